"""How the tables of the Persian front end are made."""
