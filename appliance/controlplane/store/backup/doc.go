// Package backup writes, reads and checks backups of the store, and fills new tables
// with one. It depends neither on the node that makes a backup nor on the files that a
// restored one becomes: the store calls Write with a view of its tables, and Fill with
// transactions of new ones.
//
// A backup is the content of the tables, not their layout: objects, remembered batches,
// the audit log, usage records, their sums and histories of one moment, without indexes
// and the change log, so that any later version can read it and nothing of it is ever
// mapped into memory.
//
//	0  magic "BASALTBK"      8 bytes
//	8  version               uint32, little-endian = 1
//	12 size of the info      uint32, little-endian, bytes
//	16 info                  JSON: Info
//	   records               kind (1 byte), size (uvarint), JSON; of usage, sums and histories:
//	                         size of the key (uvarint), key, value, as in the tables
//	   end                   'e', size (uvarint), JSON: number of items of each kind
//	   SHA-256 of all before 32 bytes
package backup
