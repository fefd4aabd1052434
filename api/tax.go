package api

import (
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api/vat"
)

// TaxReason is why an invoice has its tax.
type TaxReason string

// Reasons for a tax.
const (
	TaxDomestic        TaxReason = "domestic"
	TaxCustomerCountry TaxReason = "customerCountry"
	TaxReverseCharge   TaxReason = "reverseCharge"
	TaxOther           TaxReason = "other"
	TaxNone            TaxReason = "none"
)

// StoredTaxSettings is the stored settings of the operator, or of a reseller. The spec has
// neither an organization nor a revision.
type StoredTaxSettings struct {
	Kind Kind
	Meta Meta
	Spec TaxSettings
}

// clusterTaxSettingsID is the ID of the operator's settings.
const clusterTaxSettingsID = "taxes-000000000000"

// TaxSettingsID returns the ID of the settings of a seller; empty: the operator.
func TaxSettingsID(seller OrganizationID) string {
	if seller == "" {
		return clusterTaxSettingsID
	}
	_, random, _ := strings.Cut(string(seller), "-")
	return KindTaxSettings.Info().IDPrefix + "-" + random
}

// View returns the settings in the form of the API.
func (t StoredTaxSettings) View() TaxSettings {
	out := t.Spec
	out.Organization, out.Revision = OrganizationID(t.Meta.Organization), t.Meta.Revision
	return out
}

// Stored returns the settings in the form of the store: decided, and with the VAT number
// in its usual form.
func (s TaxSettings) Stored() TaxSettings {
	s.Organization, s.Revision, s.Undecided = "", 0, false
	s.TaxID = usualTaxID(s.Country, s.TaxID)
	return s
}

const maxTaxRates = 256

// ValidateTaxSettings checks settings in a client's request.
func ValidateTaxSettings(s TaxSettings) error {
	var bad faults
	bad.note(text("taxId", s.TaxID), taxID("country", "taxId", s.Country, s.TaxID))
	if s.ReverseCharge && !vat.Union(s.Country) {
		bad.note(invalid("reverseCharge", "the seller's country is not in the EU").WithHint("set country to a member of the EU, or disable the reverse charge"))
	} else if s.ReverseCharge && s.TaxID == "" {
		bad.note(invalid("taxId", "is required for the reverse charge"))
	}
	bad.note(text("other.name", s.Other.Name), between("other.basisPoints", s.Other.BasisPoints, 0, maxBasisPoints, ""))
	if s.Other.Name == "" && s.Other.BasisPoints > 0 {
		bad.note(invalid("other.name", "a name is required"))
	}
	if len(s.Rates) > maxTaxRates {
		bad.note(invalid("rates", "has %d rates, want at most %d", len(s.Rates), maxTaxRates))
		return bad.err()
	}
	type begin struct {
		country, region string
		from            time.Time
	}
	seen := map[begin]bool{}
	for i, r := range s.Rates {
		at := func(field string) string { return strings.TrimPrefix(fieldOf("rates", i)(field), "spec.") }
		bad.note(country(at("country"), r.Country), text(at("region"), r.Region), text(at("name"), r.Name), between(at("basisPoints"), r.BasisPoints, 0, maxBasisPoints, ""))
		if r.Name == "" {
			bad.note(invalid(at("name"), "a name is required"))
		}
		b := begin{r.Country, r.Region, r.From.UTC()}
		if seen[b] {
			bad.note(invalid(at("from"), "%s already has a rate from then on", strings.TrimSuffix(r.Country+" "+r.Region, " ")))
		}
		seen[b] = true
	}
	return bad.err()
}

func country(field, code string) *Error {
	if vat.KnownCountry(code) {
		return nil
	}
	return invalid(field, "%q is not a country", clip(code)).WithHint("use a code of ISO 3166-1 alpha-2, e.g. DE")
}

// taxID checks the country of a party and its VAT number. What countries without known
// rules use is not checked, nor a number without a country.
func taxID(countryField, field, code, number string) *Error {
	if code == "" {
		return nil
	}
	if err := country(countryField, code); err != nil {
		return err
	}
	if number == "" || !vat.Checked(code) {
		return nil
	}
	if _, err := vat.Number(code, number); err != nil {
		return invalid(field, "%v", err).WithHint("check the number and the country; without a VAT number, leave it empty")
	}
	return nil
}

// usualTaxID returns a number in the form in which invoices have it.
func usualTaxID(country, number string) string {
	if usual, err := vat.Number(country, number); err == nil {
		return usual
	}
	return number
}
