package cli

import (
	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// mailSuppressions describes addresses from which mail was returned.
func (a *App) mailSuppressions() *kind[api.MailSuppression] {
	k := &kind[api.MailSuppression]{
		app: a, noun: "mail-suppression", about: "E-mail addresses from which mail was returned; delete one to send mail to it again",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ADDRESS", "ORGANIZATION", "SUPPRESSED", "RETURNED", "REASON"},
		row: func(s api.MailSuppression) []string {
			since, last := "no", "-"
			if at := s.Status.SuppressedAt; at != nil {
				since = "since " + formatTime(*at)
			}
			if at := s.Status.ReturnedAt; at != nil {
				last = formatTime(*at)
			}
			return []string{s.Spec.Address, a.named(s.Meta.Organization), since, last, s.Status.LastError}
		},
	}
	k.more = []*cobra.Command{k.deleteCommand()}
	return k
}
