package cli

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

// wholesaleFlags declares the period in which a reseller is charged for its customers' usage.
func wholesaleFlags(f *pflag.FlagSet) func(*api.OrganizationBilling) error {
	from := f.String("wholesale-from", "", "full hour from which the reseller is charged for its customers' usage by its own price book, e.g. 2026-04-01 or 2026-03-05T14:00:00Z")
	until := f.String("wholesale-until", "", "full hour at which that ends")
	return func(b *api.OrganizationBilling) error {
		if *from == "" && *until == "" {
			return nil
		}
		if b == nil {
			return usagef("--billing is required: invoice or prepaid")
		}
		begin, err := moment(*from, time.Time{})
		if err != nil {
			return err
		}
		end, err := moment(*until, time.Time{})
		if err != nil {
			return err
		}
		b.Wholesale = slices.Clone(b.Wholesale)
		last := len(b.Wholesale) - 1
		switch {
		case *from != "":
			b.Wholesale = append(b.Wholesale, api.Wholesale{From: begin, Until: end})
		case last < 0:
			return usagef("--wholesale-until needs --wholesale-from: the organization is not charged for its customers' usage")
		default:
			b.Wholesale[last].Until = end
		}
		return nil
	}
}
