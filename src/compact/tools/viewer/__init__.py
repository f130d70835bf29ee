"""The trace viewer: a local page that shows sessions live and from their archives.

`compact.tools.viewer.serving.ViewerServer` serves it. It needs the extra `viewer`.
"""
