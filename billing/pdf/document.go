// Package pdf prints invoices and credit notes as PDF. It is pure: the same document
// gives the same bytes. The fonts are Go's, which cover Latin, Greek and Cyrillic;
// other characters are printed as question marks.
package pdf

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"

	"github.com/basalt-gpu/basalt/api"
)

// Sizes on an A4 page, in millimeters.
const (
	margin = 18.0
	width  = 210 - 2*margin
	line   = 4.6
	family = "go"
)

// columns are the columns of the table of lines, with their widths.
var columns = []struct {
	title string
	width float64
	align string
}{{"What", 84, "L"}, {"Quantity", 30, "R"}, {"Price", 34, "R"}, {"Amount", 26, "R"}}

// sheet is a document while it is printed.
type sheet struct {
	*fpdf.Fpdf
	font *sfnt.Font
	buf  sfnt.Buffer
}

// Invoice returns an invoice as PDF.
func Invoice(inv api.Invoice) ([]byte, error) {
	s := inv.Spec
	p, err := begin("Invoice "+s.Number, s.IssuedAt)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("print invoice %s: %w", s.Number, err)
	}
	p.parties(s.Prices.Seller, s.Customer)
	p.head("Invoice "+s.Number, "Issued "+s.IssuedAt.In(zone).Format(time.DateOnly), "Due "+s.DueAt.In(zone).Format(time.DateOnly),
		fmt.Sprintf("Use from %s to %s (%s)", s.From.In(zone).Format("2006-01-02 15:04"), s.To.In(zone).Format("2006-01-02 15:04"), zone))
	p.table(func(row func(...string)) {
		for _, l := range s.Lines {
			row(lineText(l), quantity(l), price(l), money(l.AmountMicros))
		}
	})
	p.total(s.TotalMicros, s.Currency)
	p.tax(s.Tax)
	return p.end()
}

// CreditNote returns a credit note as PDF; inv is its invoice.
func CreditNote(n api.CreditNote, inv api.Invoice) ([]byte, error) {
	s := n.Spec
	p, err := begin("Credit note "+s.Number, s.IssuedAt)
	if err != nil {
		return nil, err
	}
	lines := map[string]api.InvoiceLine{}
	for _, l := range inv.Spec.Lines {
		lines[l.ID] = l
	}
	p.parties(inv.Spec.Prices.Seller, inv.Spec.Customer)
	p.head("Credit note "+s.Number, "Issued "+s.IssuedAt.UTC().Format(time.DateOnly), "On invoice "+inv.Spec.Number, s.Reason)
	p.table(func(row func(...string)) {
		for _, c := range s.Lines {
			row(lineText(lines[c.Line]), "", "", money(c.AmountMicros))
		}
	})
	p.total(s.TotalMicros, s.Currency)
	p.tax(inv.Spec.Tax)
	return p.end()
}

func begin(title string, at time.Time) (*sheet, error) {
	font, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	s := &sheet{Fpdf: fpdf.New("P", "mm", "A4", ""), font: font}
	s.AddUTF8FontFromBytes(family, "", goregular.TTF)
	s.AddUTF8FontFromBytes(family, "B", gobold.TTF)
	s.SetCatalogSort(true)
	s.SetCreationDate(at.UTC())
	s.SetModificationDate(at.UTC())
	s.SetTitle(title, true)
	s.SetMargins(margin, margin, margin)
	s.SetAutoPageBreak(true, margin)
	s.SetFooterFunc(func() {
		s.SetY(-margin + 4)
		s.SetFont(family, "", 7)
		s.CellFormat(width, line, s.known(title)+", page "+strconv.Itoa(s.PageNo()), "", 0, "C", false, 0, "")
	})
	s.AddPage()
	return s, nil
}

// known returns the text with characters that the font lacks replaced by question
// marks.
func (s *sheet) known(text string) string {
	return strings.Map(func(r rune) rune {
		if i, err := s.font.GlyphIndex(&s.buf, r); err != nil || i == 0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

func (s *sheet) text(style string, size float64, text string) {
	s.SetFont(family, style, size)
	s.MultiCell(width, line*size/9, s.known(text), "", "L", false)
}

func (s *sheet) parties(seller, customer api.Party) {
	for _, p := range []struct {
		style string
		api.Party
	}{{"B", seller}, {"", customer}} {
		if p.Name != "" {
			s.text(p.style, 11, p.Name)
		}
		for _, l := range p.Address {
			s.text("", 9, l)
		}
		if p.Country != "" {
			s.text("", 9, "Country: "+p.Country)
		}
		if p.TaxID != "" {
			s.text("", 9, "VAT number: "+p.TaxID)
		}
		s.Ln(6)
	}
}

func (s *sheet) head(title string, facts ...string) {
	s.text("B", 15, title)
	s.Ln(1)
	for _, f := range facts {
		if f != "" {
			s.text("", 9, f)
		}
	}
	s.Ln(4)
}

func (s *sheet) table(rows func(row func(...string))) {
	row := func(style, border string) func(...string) {
		return func(cells ...string) {
			s.SetFont(family, style, 8)
			for i, c := range columns {
				s.CellFormat(c.width, line, s.fit(cells[i], c.width-2), border, 0, c.align, false, 0, "")
			}
			s.Ln(line)
		}
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	row("B", "B")(titles...)
	rows(row("", ""))
}

// fit shortens a text to a width.
func (s *sheet) fit(text string, w float64) string {
	r := []rune(s.known(text))
	if s.GetStringWidth(string(r)) <= w {
		return string(r)
	}
	for len(r) > 0 && s.GetStringWidth(string(r)+"…") > w {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

func (s *sheet) total(micros int64, currency string) {
	s.SetFont(family, "B", 10)
	last := columns[len(columns)-1].width
	s.CellFormat(width-last, line*1.6, "Total "+s.known(currency), "T", 0, "R", false, 0, "")
	s.CellFormat(last, line*1.6, money(micros), "T", 1, "R", false, 0, "")
}

// taxReasons are what an invoice states about its tax.
var taxReasons = map[api.TaxReason]string{
	api.TaxDomestic:        "at the rate of the seller's country",
	api.TaxCustomerCountry: "at the rate of the customer's country",
	api.TaxReverseCharge:   "VAT to be accounted for by the recipient of the service",
}

// tax states why the invoice has its tax.
func (s *sheet) tax(t *api.InvoiceTax) {
	if t == nil {
		return
	}
	text := taxReasons[t.Reason]
	if t.Note != "" {
		text = t.Note + ": " + text
	} else if text != "" {
		text = t.Name + " " + text
	}
	if text != "" {
		s.Ln(4)
		s.text("", 9, text)
	}
}

func (s *sheet) end() ([]byte, error) {
	var out bytes.Buffer
	err := s.Output(&out)
	return out.Bytes(), err
}

func lineText(l api.InvoiceLine) string {
	what := string(l.Meter)
	switch {
	case l.Kind == api.LineTax:
		return fmt.Sprintf("%s %s %%", l.Name, strconv.FormatFloat(float64(l.BasisPoints)/100, 'f', -1, 64))
	case l.Kind == api.LineCommitment:
		return "commitment: " + what
	case l.Kind == api.LineMinimum:
		return "to the minimum of the period"
	case what == "" && l.Name != "":
		what = l.Name
	case what == "":
		what = "minimum"
	}
	switch {
	case l.ResourceName != "":
		what = l.ResourceName + ": " + what
	case l.Resource != "":
		what = l.Resource + ": " + what
	}
	if l.Kind == api.LineLate {
		what = "late: " + what
	}
	return what
}

func quantity(l api.InvoiceLine) string {
	if l.Per < 1 || l.Quantity.IsZero() {
		return ""
	}
	return strconv.FormatFloat(l.Quantity.Float()/float64(l.Per), 'f', 3, 64)
}

func price(l api.InvoiceLine) string {
	switch {
	case l.Committed:
		return "committed"
	case l.Per < 1:
		return ""
	case l.Unit == "":
		return money(l.PriceMicros)
	}
	return money(l.PriceMicros) + " / " + l.Unit
}

// money formats micros in the currency, with two decimals or as many as needed.
func money(micros int64) string {
	sign, u := "", uint64(micros)
	if micros < 0 {
		sign, u = "-", -u
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", u%1e6), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, u/1e6, fraction)
}
