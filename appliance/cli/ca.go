package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) clusterCACommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "Show and replace the CA of the cluster's certificates"}
	cmd.AddCommand(a.caGetCommand(), a.caReplaceCommand(), a.caCancelCommand())
	return cmd
}

func (a *App) caGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show the cluster's CA and its replacement", Args: cobra.NoArgs}
	pem := cmd.Flags().Bool("pem", false, "print the certificates that nodes trust, for clients of the API (--ca-file)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ca, err := a.clusterCA(cmd.Context())
		if err != nil {
			return err
		}
		if *pem {
			_, err := fmt.Fprint(a.Out, ca.Bundle)
			return err
		}
		return a.print(ca, func() table { return caTable(ca) })
	}
	return cmd
}

func (a *App) caReplaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replace", Short: "Replace the cluster's CA by a new one, without interruption", Args: cobra.NoArgs,
		Long: "First all nodes trust both CAs. Give clients that trust the old one only the new one too (basalt cluster ca get --pem),\n" +
			"then run the command with --renew: nodes renew their certificates, and then no longer trust the old CA.\n" +
			"Join tokens from before are invalid then. A node that does not answer is waited for: remove it if it is lost.",
	}
	renew := cmd.Flags().Bool("renew", false, "nodes renew their certificates as soon as all of them trust the new CA")
	wait := cmd.Flags().Bool("wait", false, "wait until the phase is complete")
	timeout := cmd.Flags().Duration("timeout", 10*time.Minute, "limit for --wait")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.api.ReplaceCA(cmd.Context(), *renew)
		if err != nil {
			return err
		}
		if c.CA == nil {
			return noCA()
		}
		ca := *c.CA
		if *wait {
			if ca, err = a.awaitCA(cmd.Context(), *timeout, *renew); err != nil {
				return err
			}
		}
		return a.print(ca, func() table { return caTable(ca) })
	}
	return cmd
}

func (a *App) caCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel", Short: "Keep the cluster's CA, if nodes do not renew their certificates yet", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.api.CancelCAReplacement(cmd.Context())
			if err != nil {
				return err
			}
			if c.CA == nil {
				return noCA()
			}
			return a.print(*c.CA, func() table { return caTable(*c.CA) })
		},
	}
}

// awaitCA waits until all nodes trust the new CA or, with renew, until the replacement is
// complete.
func (a *App) awaitCA(parent context.Context, limit time.Duration, renew bool) (api.CertificateAuthority, error) {
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	told := ""
	for {
		ca, err := a.clusterCA(ctx)
		if err == nil && (ca.Phase == "" || !renew && len(ca.WaitingFor) == 0) {
			return ca, nil
		}
		if now := strings.Join(ca.WaitingFor, ", "); err == nil && now != told && now != "" {
			told = now
			fmt.Fprintf(a.Err, "phase %s: waiting for %s\n", ca.Phase, printable(now))
		}
		select {
		case <-parent.Done():
			return ca, parent.Err()
		case <-ctx.Done():
			return ca, api.Errorf(codeTimeout, "the replacement of the cluster's CA did not complete its phase within %s", limit).
				WithHint("it continues without this command: basalt cluster ca get shows which nodes it waits for")
		case <-time.After(time.Second):
		}
	}
}

func (a *App) clusterCA(ctx context.Context) (api.CertificateAuthority, error) {
	c, err := a.api.Cluster(ctx)
	if err == nil && c.CA == nil {
		err = noCA()
	}
	if err != nil {
		return api.CertificateAuthority{}, err
	}
	return *c.CA, nil
}

func noCA() error {
	return api.Errorf(api.CodeUnavailable, "the node does not know the cluster's CA yet").WithHint("try again")
}

func caTable(ca api.CertificateAuthority) table {
	phase := string(ca.Phase)
	if ca.Held {
		phase += ", until: basalt cluster ca replace --renew"
	}
	return table{{"FINGERPRINT", "EXPIRES", "REPLACED BY", "PHASE", "WAITING FOR"},
		{ca.Fingerprint, ca.ExpiresAt.UTC().Format(time.DateOnly), ca.NextFingerprint, phase, strings.Join(ca.WaitingFor, ", ")}}
}
