package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// findingWords are the findings of a review as the table shows them.
var findingWords = map[api.AccessFinding]string{
	api.NoSecondFactor: "no second factor",
	api.NeverUsed:      "never used",
	api.Unused:         "not used lately",
	api.NoExpiry:       "does not expire",
	api.Unrestricted:   "no scopes or networks",
	api.Expired:        "expired",
}

func (a *App) auditAccess() *cobra.Command {
	cmd := &cobra.Command{Use: "access", Short: "Review who has access: users and API keys, with what to check", Args: cobra.NoArgs,
		Long: "Lists the users that are not disabled and all API keys, those to check first. To check: a password without\n" +
			"two-factor authentication or a passkey, access that was not used for --unused-days, keys that do not expire,\n" +
			"have expired, or have neither scopes nor networks. You see those that you may list; with --organization, of one organization.",
		Example: "  basalt audit access --organization acme\n  basalt audit access --findings -o json > review-2026-12.json"}
	var p api.ListAccessParams
	cmd.Flags().IntVar(&p.UnusedDays, "unused-days", 90, "days without use after which access is reported")
	only := cmd.Flags().Bool("findings", false, "only those to check")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if p.UnusedDays < 1 {
			return usagef("--unused-days %d: want at least 1", p.UnusedDays)
		}
		p.Organization = a.config.Organization
		if *only {
			p.Finding = api.AnyFinding
		}
		entries := []api.AccessEntry{}
		for e, err := range a.api.Access(cmd.Context(), p) {
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return a.print(entries, func() table { return accessTable(entries) })
	}
	return cmd
}

func accessTable(entries []api.AccessEntry) table {
	t := table{{"KIND", "NAME", "GRANTS", "LAST USED", "EXPIRES", "TO CHECK", "ID"}}
	when := func(at *time.Time, none string) string {
		if at == nil {
			return none
		}
		return formatTime(*at)
	}
	for _, e := range entries {
		words := make([]string, len(e.Findings))
		for i, f := range e.Findings {
			words[i] = findingWords[f]
		}
		expires := ""
		if e.Kind == api.KindAPIKey {
			expires = when(e.ExpiresAt, "never")
		}
		t = append(t, []string{string(e.Kind), e.Name, accessWords(e.Grants), when(e.LastUsedAt, "never"), expires, strings.Join(words, ", "), e.ID})
	}
	return t
}

// accessWords describes grants as grantWords does, by the names in the review.
func accessWords(grants []api.AccessGrant) string {
	words := make([]string, len(grants))
	for i, g := range grants {
		words[i] = string(g.Role)
		if g.Organization != "" {
			words[i] += "@" + first(g.OrganizationName, string(g.Organization))
		}
		if g.Project != "" {
			words[i] += "/" + first(g.ProjectName, string(g.Project))
		}
		if g.Group != "" {
			words[i] += " (group " + first(g.GroupName, string(g.Group)) + ")"
		}
	}
	return strings.Join(words, ", ")
}
