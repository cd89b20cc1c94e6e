"""Are repeated facts recognised and changed facts kept apart (spec T6, ruling 13)?"""
