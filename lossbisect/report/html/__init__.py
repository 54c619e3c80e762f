"""Reports as HTML pages, each one file that needs nothing else.

`model` says what a page is made of. One module a kind of page turns finished types into it (`compare`, `correlate`,
`bisect`), `render` turns it into HTML, `markdown` into Markdown, and `origin` says what it was made from.
"""
