"""Small parts that every other package uses: argument checks, memory, compiled loops."""
