"""NetHack's keys as actions in words."""

from typing import Any

_COMPASS = {
    "N": "north",
    "E": "east",
    "S": "south",
    "W": "west",
    "NE": "northeast",
    "SE": "southeast",
    "SW": "southwest",
    "NW": "northwest",
}
# The commands that an agent may use; saving, quitting and options are not among them.
COMMANDS = {
    "up": "climb the stairs on which you stand",
    "down": "descend the stairs on which you stand",
    "wait": "rest for a turn",
    "more": "read the rest of a message that ends with --More--",
    "annotate": "name this level",
    "apply": "use a tool",
    "call": "name a kind of thing",
    "cast": "cast a spell",
    "close": "close a door next to you",
    "open": "open a door next to you",
    "dip": "dip a thing into a liquid",
    "drop": "drop a thing",
    "droptype": "drop several things",
    "eat": "eat something",
    "esc": "leave a menu or a question",
    "engrave": "write on the floor",
    "enhance": "improve a skill",
    "fire": "shoot what is in your quiver",
    "fight": "attack in a direction, even if nothing is seen there",
    "force": "force a lock",
    "inventory": "list what you carry",
    "invoke": "use the power of a special object",
    "jump": "jump to a place",
    "kick": "kick a door, a chest or a monster",
    "look": "look at what lies here",
    "loot": "open a box that lies here",
    "monster": "use the ability of the monster that you have become",
    "offer": "sacrifice to your god on an altar",
    "pay": "pay what you owe in a shop",
    "pickup": "pick up what lies here",
    "pray": "pray to your god",
    "puton": "put on a ring or an amulet",
    "quaff": "drink a potion, or from a fountain",
    "quiver": "choose what you shoot",
    "read": "read a scroll or a book",
    "remove": "take off a ring or an amulet",
    "rub": "rub a lamp or a stone",
    "search": "search for hidden doors and traps around you",
    "swap": "exchange your two weapons",
    "takeoff": "take off a piece of armour",
    "takeoffall": "take off all armour",
    "teleport": "teleport, if you can",
    "throw": "throw a thing",
    "travel": "walk to a place on the map",
    "twoweapon": "fight with two weapons, or stop it",
    "untrap": "disarm a trap",
    "wear": "put on a piece of armour",
    "wield": "take a weapon in hand",
    "wipe": "wipe your face",
    "zap": "use a wand",
}
_CHARACTERS = {"MINUS": ("minus", "the key -"), "SPACE": ("space", "the space bar"), "APOS": ("apos", "the key '")}


def words_of(keys: Any) -> dict[str, tuple[int, str]]:
    """The actions of an environment with these keys: the index of the key, and a description."""
    found: dict[str, tuple[int, str]] = {}
    for index, key in enumerate(keys):
        word, text = _word(type(key).__name__, key.name)
        if word:
            found[word] = (index, text)
    return found


def _word(kind: str, name: str) -> tuple[str, str]:
    if kind == "CompassDirection":
        return _COMPASS[name], f"move {_COMPASS[name]}"
    if kind == "CompassDirectionLonger":
        return f"far {_COMPASS[name]}", f"move {_COMPASS[name]} until something is met"
    if kind == "TextCharacters" and name.startswith("NUM_"):
        return name[4:], f"the key {name[4:]}"
    if kind == "TextCharacters":
        return _CHARACTERS.get(name, ("", ""))
    word = name.lower()
    return (word, COMMANDS[word]) if word in COMMANDS else ("", "")
