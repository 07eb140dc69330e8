"""The household: what is in it, what happens, what is asked, how it is drawn and exported."""
