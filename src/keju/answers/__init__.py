"""Reading an answer out of text: think tags, run-on, markers, cleaning, labels.

Everything here is a pure function of text and runs in linear time: a looping reply of 100 kB is
read in milliseconds. Nothing is ever guessed.
"""
