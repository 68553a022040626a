-- From here on bodies of records are stored without what every record says (audit/pack.go). The column is as it was; a
-- program from before that would show them as they are stored, and is kept from the database by this number.
SELECT 1;
