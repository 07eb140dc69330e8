"""The household's whole vocabulary. Everything said, drawn or coded in the dollhouse is in here.

Orders matter: the position of a word is its number in a frame's code strip.
"""

from __future__ import annotations

ROOMS = ("kitchen", "bathroom", "bedroom", "hallway", "study", "garden", "garage", "lounge")
PLACES = (
    "table", "counter", "shelf", "sofa", "bed", "desk", "sink", "bench",
    "fridge", "oven", "cabinet", "chair", "box", "rug", "stool", "rack",
)  # fmt: skip
SLOTS = ("far left", "far middle", "far right", "near left", "near middle", "near right")
"""Where a thing stands in the picture, from the wearer's view."""
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "white", "black")

VESSELS = ("cup", "bottle", "bucket", "jar", "bowl", "vase", "kettle")
DEVICES = ("lamp", "radio", "torch", "candle", "laptop", "phone")
CASES = ("bag", "case", "purse", "parcel")
FOOD = ("apple", "carrot", "pear", "lemon", "egg", "onion", "pie", "pepper")
CLOTH = ("sock", "scarf", "shirt", "hat", "coat")
PAPER = ("book", "letter")
TOYS = ("spoon", "key", "ball", "drum", "bell", "shoe", "kite", "robot")
KINDS = (*VESSELS, *DEVICES, *CASES, *FOOD, *CLOTH, *PAPER, *TOYS)

STATES = {
    **dict.fromkeys(VESSELS, ("full", "empty")),
    **dict.fromkeys(DEVICES, ("on", "off")),
    **dict.fromkeys(CASES, ("open", "closed")),
}
"""The two states of the kinds that have one."""

ACTIONS = {
    "take": KINDS,
    "put": KINDS,
    "seek": KINDS,
    "open": CASES,
    "close": CASES,
    "fill": VESSELS,
    "pour": VESSELS,
    "turn on": DEVICES,
    "turn off": DEVICES,
    "wash": (*VESSELS, *FOOD, *CLOTH),
    "cut": FOOD,
    "stir": VESSELS,
    "fold": (*CLOTH, *PAPER),
    "read": PAPER,
    "fix": (*DEVICES, *CASES, *TOYS),
    "clean": (*DEVICES, *CASES, *TOYS),
    "paint": (*VESSELS, *CASES, *TOYS),
    "wait": (),
    "leave": (),
}
"""What can be done to which kinds; `wait` and `leave` need no thing."""
MAKES = {
    "open": "open", "close": "closed", "fill": "full", "pour": "empty",
    "turn on": "on", "turn off": "off",
}  # fmt: skip
"""The state that an action leaves its thing in."""
CRAFTS = ("wash", "cut", "stir", "fold", "read", "fix", "clean", "paint")
"""Actions that change neither state nor place."""

CUES = ("seek", "wait")
"""Acts at which help may be due: its thought bubble and its hourglass are seen at a glance."""

PEOPLE = ("grandmother", "grandfather", "girl", "boy", "builder", "wizard", "clown")
RECIPES = ("SOUP", "CAKE", "TEA", "SALAD", "JAM")
NOTICES = ("EGGS", "RICE", "FISH", "ROOM", "GATE", "BUS", "PARK", "BANK", "POST", "CODE")
SIGN_WORDS = (*RECIPES, *NOTICES)
NUMBERS = (13, 18, 24, 29, 31, 36, 42, 47, 53, 58, 64, 69, 75, 81, 97)
"""The numbers that stand on signs and are spoken."""
MAKERS = ("Alder", "Birch", "Cedar", "Elm", "Hazel", "Maple", "Rowan", "Willow")
"""Makers of things, known only to the fact store."""
TOWNS = (
    "Northport",
    "Southport",
    "Eastport",
    "Westport",
    "Hightown",
    "Lowtown",
    "Oldtown",
    "Newtown",
)

_FUNCTION_WORDS = """
    DAY From from the I you am me it is was do did does at in on of to not now with up or and
    how How what What when When Where which Which who Who this that these The As After In see seen
    says said reads read here there first last next after between so right left front behind
    far near middle just more often times order many sign number step things thing something please
    Please remember remind usually It No help needed answer yet about cannot tell shown evidence
    suffice placed higher price coins maker lives town hold has before
"""

WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *(w for group in (ROOMS, PLACES, COLOURS, KINDS, PEOPLE) for w in group),
            *(f"{kind}s" for kind in KINDS),
            *(w for phrase in (*ACTIONS, *SLOTS) for w in phrase.split()),
            *(state for pair in STATES.values() for state in pair),
            *SIGN_WORDS,
            *MAKERS,
            *TOWNS,
            *_FUNCTION_WORDS.split(),
            *(str(n) for n in range(10)),
            *(f"{n:02d}" for n in range(100)),
        ]
    )
)
"""Every word of the household, each once; clocks and numbers are one- and two-digit words."""
