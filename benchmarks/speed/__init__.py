"""How fast the library is, against targets and against the papers' algorithms written plainly."""
