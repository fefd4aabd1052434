// Package invoice makes invoices of use and a price book: drafts, issued
// invoices, what became known late, credit notes and the periods that they are
// of. It is pure. Package tariff calculates; this one says what the lines are.
package invoice
