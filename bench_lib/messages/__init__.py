"""Messages to models: the contract, its parts and its limits; no model is opened here."""
