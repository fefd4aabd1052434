package api

import (
	"fmt"
	"strings"
)

// LineLate is the kind of line that charges for usage that became known after the
// invoice of its period was issued.
const LineLate InvoiceLineKind = "late"

// Prefixes of the numbers of a seller's documents.
const (
	InvoiceNumbers    = "INV"
	CreditNoteNumbers = "CN"
)

// DocumentNumber returns the nth number of a series, e.g. INV-000042.
func DocumentNumber(series string, n int64) string { return fmt.Sprintf("%s-%06d", series, n) }

// DocumentName returns the name of the document object with that number.
func DocumentName(number string) string { return strings.ToLower(number) }

// SeriesSpec holds the last numbers assigned to a seller's documents.
type SeriesSpec struct {
	Seller      OrganizationID `json:"seller,omitempty"`
	Invoices    int64          `json:"invoices"`
	CreditNotes int64          `json:"creditNotes"`
}

// Series is the object that stores a seller's document numbers.
type Series struct {
	Kind Kind
	Meta Meta
	Spec SeriesSpec
}
