"""`user@box` and `user@box:/path`, the machine of another daemon.

It is handed to ssh, which reads some texts as options and passes others on to a shell (ProxyCommand, Match exec).
"""

_OF_A_SHELL = set("'\"`$;&<>|(){}*?!#")


def why_bad_host(host: str) -> str:
    """Why the text cannot name a machine; empty if it can."""
    box = host.partition(":")[0]
    user, _, name = box.rpartition("@")
    if not name:
        return "names no machine. Write user@box or user@box:/path."
    if user.startswith("-") or name.startswith("-"):
        return "starts with a dash, which ssh would read as an option. Write user@box."
    if not host.isprintable() or " " in box:
        return "contains blanks or control characters. Write user@box or user@box:/path."
    if _OF_A_SHELL & set(box):
        return "contains characters that a shell would interpret. Give the machine a name in ~/.ssh/config."
    return ""
