package report

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// focus are the applicable columns of FOCUS 1.2 (focus.finops.org): Basalt has no
// regions, zones and capacity reservations, prices are in the currency of the invoice,
// and usage does not contain the labels of a resource.
var focus = []struct {
	name  string
	value func(r focusRow) string
}{
	{"BilledCost", func(r focusRow) string { return money(r.billed) }},
	{"BillingAccountId", func(r focusRow) string { return cell(string(r.doc.Organization)) }},
	{"BillingAccountName", func(r focusRow) string { return cell(cmp.Or(r.doc.Customer, string(r.doc.Organization))) }},
	{"BillingAccountType", func(focusRow) string { return "Organization" }},
	{"BillingCurrency", func(r focusRow) string { return r.doc.Currency }},
	{"BillingPeriodEnd", func(r focusRow) string { return stamp(r.doc.To) }},
	{"BillingPeriodStart", func(r focusRow) string { return stamp(r.doc.From) }},
	{"ChargeCategory", func(r focusRow) string { return r.category }},
	{"ChargeClass", func(r focusRow) string { return only(r.correction, "Correction") }},
	{"ChargeDescription", func(r focusRow) string { return cell(r.description()) }},
	{"ChargeFrequency", focusRow.frequency},
	{"ChargePeriodEnd", func(r focusRow) string { return stamp(r.to) }},
	{"ChargePeriodStart", func(r focusRow) string { return stamp(r.from) }},
	{"CommitmentDiscountCategory", func(r focusRow) string { return only(r.commitment != "", "Usage") }},
	{"CommitmentDiscountId", func(r focusRow) string { return cell(r.commitment) }},
	{"CommitmentDiscountName", func(r focusRow) string { return only(r.commitment != "", "Commitment to "+string(r.line.Meter)) }},
	{"CommitmentDiscountQuantity", func(r focusRow) string {
		return only(r.commitment != "" && !r.correction, decimal(r.unit.in(r.line.Quantity), 12))
	}},
	{"CommitmentDiscountStatus", func(r focusRow) string { return r.status }},
	{"CommitmentDiscountType", func(r focusRow) string { return only(r.commitment != "", "Commitment") }},
	{"CommitmentDiscountUnit", func(r focusRow) string { return only(r.commitment != "" && !r.correction, r.unit.name) }},
	{"ConsumedQuantity", func(r focusRow) string {
		return only(r.used(), decimal(consumedUnit(r.line.Meter).in(r.line.Quantity), 12))
	}},
	{"ConsumedUnit", func(r focusRow) string { return only(r.used(), consumedUnit(r.line.Meter).name) }},
	{"ContractedCost", func(r focusRow) string { return money(r.contracted) }},
	{"ContractedUnitPrice", func(r focusRow) string { return price(r.contractedPrice) }},
	{"EffectiveCost", func(r focusRow) string { return money(r.effective) }},
	{"InvoiceId", func(r focusRow) string { return r.number }},
	{"InvoiceIssuerName", focusRow.seller},
	{"ListCost", func(r focusRow) string { return money(r.list) }},
	{"ListUnitPrice", func(r focusRow) string { return price(r.listPrice) }},
	{"PricingCategory", func(r focusRow) string {
		return only(r.priced(), map[bool]string{true: "Committed", false: "Standard"}[r.status != ""])
	}},
	{"PricingQuantity", func(r focusRow) string { return only(r.priced(), decimal(r.unit.in(r.line.Quantity), 12)) }},
	{"PricingUnit", func(r focusRow) string { return only(r.priced(), r.unit.name) }},
	{"ProviderName", focusRow.seller},
	{"PublisherName", focusRow.seller},
	{"ResourceId", func(r focusRow) string { return cell(r.resource) }},
	{"ResourceName", func(r focusRow) string { return cell(only(r.resource == r.line.Resource, r.line.ResourceName)) }},
	{"ResourceType", func(r focusRow) string { return only(r.resource != "", r.resourceType()) }},
	{"ServiceCategory", func(r focusRow) string { return serviceOf(r.line.Meter).category }},
	{"ServiceName", func(r focusRow) string { return serviceOf(r.line.Meter).name }},
	{"ServiceSubcategory", func(r focusRow) string { return serviceOf(r.line.Meter).subcategory }},
	{"SkuId", focusRow.sku},
	{"SkuMeter", func(r focusRow) string { return only(r.sku() != "", string(r.line.Meter)) }},
	{"SkuPriceDetails", focusRow.skuDetails},
	{"SkuPriceId", focusRow.skuPrice},
	{"SubAccountId", func(r focusRow) string { return cell(r.subAccount().id) }},
	{"SubAccountName", func(r focusRow) string { return cell(r.subAccount().name) }},
	{"SubAccountType", func(r focusRow) string { return r.subAccount().kind }},
}

// WriteFOCUS writes documents as CSV with the columns of FOCUS. The sum of BilledCost
// of an InvoiceId is the total of the invoice, or of the credit note, which is
// negative.
func WriteFOCUS(w io.Writer, all ...FOCUSDocument) error {
	out := csv.NewWriter(w)
	record := make([]string, len(focus))
	for i, c := range focus {
		record[i] = c.name
	}
	_ = out.Write(record) // Flush reports errors
	for _, d := range all {
		for _, r := range focusRows(&d) {
			for i, c := range focus {
				record[i] = c.value(r)
			}
			if err := out.Write(record); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// service is a service in the terms of FOCUS.
type service struct{ name, category, subcategory string }

var services = map[api.Meter]service{
	api.MeterVCPU:     {"Instances", "Compute", "Virtual Machines"},
	api.MeterMemory:   {"Instances", "Compute", "Virtual Machines"},
	api.MeterVolume:   {"Volumes", "Storage", "Block Storage"},
	api.MeterSnapshot: {"Snapshots", "Storage", "Backup Storage"},
	api.MeterAddress:  {"Floating IPs", "Networking", "Network Connectivity"},
	api.MeterEgress:   {"Traffic", "Networking", "Network Connectivity"},
	"":                {"Billing", "Other", "Other (Other)"},
}

// serviceOf returns the service of a meter: meters that are not listed belong to GPUs.
func serviceOf(m api.Meter) service {
	if s, ok := services[m]; ok {
		return s
	}
	return service{"GPUs", "Compute", "Virtual Machines"}
}

// subAccount is what costs belong to within the paying organization: a project, or a
// customer of a reseller.
type subAccount struct{ id, name, kind string }

func (r focusRow) subAccount() subAccount {
	l := r.line
	if customer := l.Customer(); customer != "" {
		return subAccount{string(customer), cmp.Or(l.ResourceName, string(customer)), "Customer"}
	}
	if l.Project == "" {
		return subAccount{}
	}
	return subAccount{string(l.Project), cmp.Or(r.doc.Projects[l.Project], string(l.Project)), "Project"}
}

func (r focusRow) resourceType() string {
	switch {
	case r.line.Customer() != "":
		return "Customer"
	case r.resource != r.line.Resource:
		return "Commitment"
	case r.line.Meter == api.MeterVolume:
		return "Volume"
	case r.line.Meter == api.MeterSnapshot:
		return "Snapshot"
	case r.line.Meter == api.MeterAddress:
		return "Floating IP"
	case r.line.Meter == api.MeterEgress:
		return "Network interface"
	}
	return "Instance"
}

func (r focusRow) frequency() string {
	switch r.category {
	case usageCategory:
		return "Usage-Based"
	case creditCategory:
		return "One-Time"
	}
	return "Recurring"
}

func (r focusRow) description() string {
	of := cmp.Or(r.line.ResourceName, r.line.Resource, "several resources")
	switch {
	case r.status == statusUnused:
		return "unused part of the commitment to " + string(r.line.Meter)
	case r.category == creditCategory:
		return strings.TrimSpace("credit of invoice " + r.of + ": " + cmp.Or(r.reason, r.line.ID))
	case r.category == usageCategory:
		return string(r.line.Meter) + " of " + of
	case r.category == purchaseCategory:
		return "commitment to " + string(r.line.Meter)
	case r.category == adjustmentCategory:
		return "to the minimum of the period"
	}
	return r.line.Name
}

// sku returns the SKU: what was used or bought, regardless of its price.
func (r focusRow) sku() string {
	switch {
	case !r.priced():
		return ""
	case r.category == purchaseCategory:
		return "commitment/" + string(r.line.Meter)
	}
	where := r.line.Where.String()
	if where == "" {
		return string(r.line.Meter)
	}
	return cell(string(r.line.Meter) + "/" + where)
}

func (r focusRow) skuPrice() string {
	if r.sku() == "" {
		return ""
	}
	return r.sku() + ":" + price(r.listPrice) + " " + r.doc.Currency + "/" + r.unit.name
}

// skuDetails returns the attributes of a price, and its tier.
func (r focusRow) skuDetails() string {
	w, out := r.line.Where, map[string]string{}
	for k, v := range map[string]string{"x_Flavor": w.Flavor, "x_Model": w.Model, "x_Pool": w.Pool, "x_StorageClass": w.StorageClass, "x_Tier": w.Tier} {
		if v != "" {
			out[k] = v
		}
	}
	if r.line.Tier > 0 {
		out["x_PriceTier"] = strconv.Itoa(r.line.Tier)
	}
	if r.sku() == "" || len(out) == 0 {
		return ""
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // strings
	}
	return string(raw)
}

func (r focusRow) seller() string { return cell(cmp.Or(r.doc.Seller, "Basalt")) }

// price formats a price in the currency, with more digits than an amount, since it may
// be per byte.
func price(p *big.Rat) string {
	if p == nil {
		return ""
	}
	return decimal(p, 36)
}

func only(when bool, s string) string {
	if !when {
		return ""
	}
	return s
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
