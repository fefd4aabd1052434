// Package invoice makes invoices from usage and a price book: drafts, issued invoices,
// late charges, credit notes and the periods that they cover. It is pure. Package
// tariff calculates the amounts; this package defines the lines.
package invoice
