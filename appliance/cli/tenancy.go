package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) organizations() *kind[api.Organization] {
	return &kind[api.Organization]{
		app: a, noun: "organization", about: "Customers",

		refs:    []api.Kind{api.KindPriceBook, api.KindOrganization},
		columns: []string{"DISPLAY NAME", "PRICE BOOK", "RESELLER", "STATE"},
		row: func(o api.Organization) []string {
			state := "active"
			if r := o.Spec.Restricted; r != nil {
				state = "restricted: " + r.Reason
			}
			if s := o.Spec.Suspended; s != nil {
				state = strings.TrimSuffix("suspended: "+s.Reason, ": ")
			}
			return []string{o.Spec.DisplayName, cmp.Or(a.named(string(o.Spec.PriceBook)), api.DefaultPriceBook), a.named(string(o.Spec.Parent)), state}
		},
		flags: func(f *pflag.FlagSet) func(*api.Organization) error {
			display := f.String("display-name", "", "display name")
			book := f.String("price-book", "", "price book, name or ID; default: the one named default")
			offers := f.StringSlice("offer", nil, "price books that a reseller may assign to its customers besides its own, names or IDs; replaces the previous ones")
			quota := quotaFlag(f)
			parent := f.String("reseller", "", "reseller of the organization, name or ID; default: your own")
			suspend := f.String("suspend", "", "suspend, with a reason: nothing can be created, changed or started")
			billing, wholesale := billingFlags(f), wholesaleFlags(f)
			resume := f.Bool("resume", false, "end a suspension")
			codes := f.Bool("require-totp", false, "require two-factor authentication for password sign-in")
			return func(o *api.Organization) (err error) {
				if *suspend != "" {
					o.Spec.Suspended = &api.OrganizationSuspension{Reason: *suspend}
				} else if *resume {
					o.Spec.Suspended = nil
				}
				if f.Changed("require-totp") {
					o.Spec.RequireTotp = *codes
				}
				o.Spec.Parent = cmp.Or(api.OrganizationID(*parent), o.Spec.Parent)
				o.Spec.DisplayName = cmp.Or(*display, o.Spec.DisplayName)
				o.Spec.PriceBook = cmp.Or(api.PriceBookID(*book), o.Spec.PriceBook)
				if f.Changed("offer") {
					o.Spec.Offers = nil
					for _, ref := range *offers {
						if ref != "" {
							o.Spec.Offers = append(o.Spec.Offers, api.PriceBookID(ref))
						}
					}
				}
				if o.Spec.Billing, err = billing(o.Spec.Billing); err != nil {
					return err
				}
				if err := wholesale(o.Spec.Billing); err != nil {
					return err
				}
				o.Spec.Quota, err = quota(o.Spec.Quota)
				return err
			}
		},
		more: []*cobra.Command{a.quotaCommand("organization", func(ctx context.Context, ref string) (api.Quota, error) {
			return a.api.OrganizationQuota(ctx, ref)
		})},
	}
}

func (a *App) projects() *kind[api.Project] {
	return &kind[api.Project]{
		app: a, noun: "project", about: "Projects of an organization",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "DISPLAY NAME"},
		row:     func(p api.Project) []string { return []string{a.named(p.Meta.Organization), p.Spec.DisplayName} },
		flags: func(f *pflag.FlagSet) func(*api.Project) error {
			display, quota := f.String("display-name", "", "display name"), quotaFlag(f)
			return func(p *api.Project) (err error) {
				p.Spec.DisplayName = cmp.Or(*display, p.Spec.DisplayName)
				p.Spec.Quota, err = quota(p.Spec.Quota)
				return err
			}
		},
		more: []*cobra.Command{a.quotaCommand("project", func(ctx context.Context, ref string) (api.Quota, error) {
			return a.api.ProjectQuota(ctx, ref, a.config.Organization)
		})},
	}
}
