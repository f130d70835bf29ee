"""The trace viewer: a page on this machine that shows sessions while they run, and from their archives.

`create_app` gives the ASGI application, `ViewerServer` serves it. Both need the extra `viewer`.
"""
