"""The trace viewer: a page on this machine that shows sessions while they run, and from their archives.

`compact.viewer.serving.ViewerServer` serves it. It needs the extra `viewer`.
"""
