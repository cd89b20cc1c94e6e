"""The files of other programs: in folders, in archives, and at their known places on this machine."""
