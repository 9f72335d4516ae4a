"""Privacy statements: facts, the sentences that follow from them, and the file beside a publication.

A statement holds numbers, names and truths of three values with codes of their reasons. Sentences are made from facts
where somebody reads them: on a terminal, a page, in a notebook. A member of a statement is defined in one place, with
its type, its description and its sentence (`dphmm.statement.release`).
"""
