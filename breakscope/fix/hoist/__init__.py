"""The proposer that moves what Python has to know of a tensor in front of the compiled call.

``chain`` finds the way from the call to the place that reads. ``reading`` says what is read there in the
arguments of the call: ``value`` follows names, ``binding`` goes from a function to its caller, and ``writes``
looks for who could change it on the way. ``edits`` and ``caller`` write the patch, ``proof`` has it compared,
and ``propose`` puts them together.
"""
