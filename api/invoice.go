package api

import (
	"fmt"
	"strings"
)

// LineLate charges for what became known of a period after its invoice was issued.
const LineLate InvoiceLineKind = "late"

// Numbers of a seller's documents begin with these.
const (
	InvoiceNumbers    = "INV"
	CreditNoteNumbers = "CN"
)

// DocumentNumber is the nth of a series, as INV-000042.
func DocumentNumber(series string, n int64) string { return fmt.Sprintf("%s-%06d", series, n) }

// DocumentName is the name of a document with that number.
func DocumentName(number string) string { return strings.ToLower(number) }

// SeriesSpec is how far the numbers of a seller's documents are.
type SeriesSpec struct {
	Seller      OrganizationID `json:"seller,omitempty"`
	Invoices    int64          `json:"invoices"`
	CreditNotes int64          `json:"creditNotes"`
}

// Series of a seller's numbers.
type Series struct {
	Kind Kind
	Meta Meta
	Spec SeriesSpec
}
