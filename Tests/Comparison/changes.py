"""Intended differences between the last release and this state: a reason, and whether a difference is of this kind.

The list is emptied with each release.
"""

# Each as reason and function of path, old content, new content.
CHANGES = []
