"""Small tools that every room uses: checks of arguments, files, locks, tables of any library, words for numbers."""
