"""Where a record lies: folders, archives, remote stores; and who may write there."""
