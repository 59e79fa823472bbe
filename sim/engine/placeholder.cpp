// Keeps the folder's library non-empty until its first module is written.
