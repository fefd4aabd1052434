// Package ledger posts documents (invoices, credit notes, payments) as double entries.
// It is pure.
package ledger
