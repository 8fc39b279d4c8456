"""Small parts that every other package uses: checks of arguments, files, memory, compiled loops."""
