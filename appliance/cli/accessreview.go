package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/accessreview"
	"github.com/basalt-gpu/basalt/api/client"
)

const day = 24 * time.Hour

// findingWords are the findings of a review as the table shows them.
var findingWords = map[accessreview.Finding]string{
	accessreview.NoSecondFactor: "no second factor",
	accessreview.NeverUsed:      "never used",
	accessreview.Unused:         "not used lately",
	accessreview.NoExpiry:       "does not expire",
	accessreview.Unrestricted:   "no scopes or networks",
	accessreview.Expired:        "expired",
}

func (a *App) auditAccess() *cobra.Command {
	cmd := &cobra.Command{Use: "access", Short: "Review who has access: users and API keys, with what to check", Args: cobra.NoArgs,
		Long: "Lists the users that are not disabled and all API keys, those to check first. To check: a password without\n" +
			"two-factor authentication or a passkey, access that was not used for --unused-days, keys that do not expire,\n" +
			"have expired, or have neither scopes nor networks. You see those that you may list; with --organization, of one organization.",
		Example: "  basalt audit access --organization acme\n  basalt audit access --findings -o json > review-2026-12.json"}
	days := cmd.Flags().Int("unused-days", 90, "days without use after which access is reported")
	only := cmd.Flags().Bool("findings", false, "only those to check")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *days < 1 {
			return usagef("--unused-days %d: want at least 1", *days)
		}
		entries, err := a.reviewAccess(cmd.Context(), time.Duration(*days)*day, *only)
		if err != nil {
			return err
		}
		return a.print(entries, func() table {
			a.learn(cmd.Context(), []api.Kind{api.KindOrganization, api.KindProject})
			return a.accessTable(entries)
		})
	}
	return cmd
}

// reviewAccess returns the review of the users and keys that the caller may list.
func (a *App) reviewAccess(ctx context.Context, unused time.Duration, only bool) ([]accessreview.Entry, error) {
	q := client.Query{Organization: a.config.Organization}
	var users []api.User
	for u, err := range client.Of[api.User](a.api).All(ctx, q) {
		if err != nil {
			return nil, err
		}
		users = append(users, u)
	}
	var keys []api.APIKey
	for k, err := range client.Of[api.APIKey](a.api).All(ctx, q) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	now := a.Now().UTC()
	entries := accessreview.Of(users, keys, now.Add(-unused), now)
	for i, e := range entries {
		if only && len(e.Findings) == 0 {
			return entries[:i], nil // those with findings come first
		}
	}
	return entries, nil
}

func (a *App) accessTable(entries []accessreview.Entry) table {
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
		t = append(t, []string{string(e.Kind), e.Name, a.grantWords(e.Grants), when(e.LastUsedAt, "never"), expires, strings.Join(words, ", "), e.ID})
	}
	return t
}
