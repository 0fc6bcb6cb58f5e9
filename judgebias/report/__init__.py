"""Tables for people and programs, from finished figures; nothing here touches Ray."""
