"""The trace viewer: a page on this machine that shows sessions while they run, and from their archives.

`compact.tools.viewer.serving.ViewerServer` serves it. It needs the extra `viewer`.
"""
