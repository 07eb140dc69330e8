"""From a reply to what it says: parsed without guessing, then held against the gate."""
