"""The labelling page: FastAPI, server-rendered pages and a little plain script. All of it is in the
package.
"""
