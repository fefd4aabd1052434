package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/webhooksig"
)

func (a *App) webhooks() *kind[api.Webhook] {
	k := &kind[api.Webhook]{
		app: a, noun: "webhook", about: "Notify your services of events with signed requests",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"URL", "EVENTS", "STATE", "NOTE"},
		row: func(w api.Webhook) []string {
			return []string{w.Spec.URL, cmp.Or(strings.Join(w.Spec.Events, ","), "all"), webhookState(w), w.Status.LastError}
		},
		made: a.showSecret, secret: true,
		flags: func(f *pflag.FlagSet) func(*api.Webhook) error {
			url := f.String("url", "", "http or https URL with a public address")
			events := f.StringSlice("events", nil, "event types, e.g. instance.failed or instance.*; replaces the previous ones; default: all")
			pause, resume := f.Bool("pause", false, "pause deliveries"), f.Bool("resume", false, "resume deliveries")
			return func(w *api.Webhook) error {
				w.Spec.URL = cmp.Or(*url, w.Spec.URL)
				if f.Changed("events") {
					w.Spec.Events = *events
				}
				if *pause || *resume {
					w.Spec.Paused = *pause
				}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{
		rotate(k, "requests are signed with both for a while", "how long requests are also signed with the old secret", (*client.API).RotateWebhook),
		a.webhookReplay(k), a.webhookTest(k), a.webhookDeliveries(k), a.webhookVerify(),
	}
	return k
}

func webhookState(w api.Webhook) string {
	switch {
	case w.Spec.Paused:
		return "paused"
	case w.Status.Attempts > 0:
		return fmt.Sprintf("retrying (%d)", w.Status.Attempts)
	case w.Status.GivenUp > 0:
		return fmt.Sprintf("active, %d abandoned", w.Status.GivenUp)
	}
	return "active"
}

func (a *App) showSecret(w api.Webhook) {
	if a.flags.output == "table" {
		fmt.Fprintf(a.Out, "secret: %s\nSave it now: it is not shown again. Verify requests with it: basalt webhook verify --help\n\n", w.Secret)
	}
}

func (a *App) webhookReplay(k *kind[api.Webhook]) *cobra.Command {
	cmd := &cobra.Command{Use: "replay NAME|ID", Short: "Redeliver events in order, from an event or a time on", Args: cobra.ExactArgs(1)}
	from := cmd.Flags().String("from", "", "event ID or time, e.g. 2026-11-22T00:00:00Z")
	_ = cmd.MarkFlagRequired("from")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if w, err = a.api.ReplayWebhook(cmd.Context(), w.Meta.ID, *from); err != nil {
			return err
		}
		return k.printOne(cmd.Context(), w)
	}
	return cmd
}

func (a *App) webhookTest(k *kind[api.Webhook]) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME|ID", Short: "Queue a test event (webhook.test)", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := k.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if _, err = a.api.TestWebhook(cmd.Context(), w.Meta.ID); err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "test event queued: basalt webhook deliveries %s\n", w.Meta.Name)
			return nil
		},
	}
}

func (a *App) webhookDeliveries(k *kind[api.Webhook]) *cobra.Command {
	cmd := &cobra.Command{Use: "deliveries NAME|ID", Short: "List recent events and their delivery state", Args: cobra.ExactArgs(1)}
	count := cmd.Flags().Int("count", 50, "maximum number of events; 0: all that are kept")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		list := []api.WebhookDelivery{}
		for d, err := range a.api.Deliveries(cmd.Context(), w.Meta.ID) {
			if err != nil {
				return err
			}
			if list = append(list, d); len(list) == *count {
				break
			}
		}
		return a.print(list, func() table {
			t := table{{"EVENT", "TIME", "TYPE", "STATE", "NEXT", "NOTE"}}
			for _, d := range list {
				next := ""
				if d.NextAt != nil {
					next = formatTime(*d.NextAt)
				}
				t = append(t, []string{d.Event.ID, formatTime(d.Event.Timestamp), d.Event.Type, string(d.State), next, d.LastError})
			}
			return t
		})
	}
	return cmd
}

func (a *App) webhookVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify the signature of a request read from standard input", Args: cobra.NoArgs,
		Long: "Reads the request body from standard input exactly as received, and its three headers from flags. The secret is\n" +
			"read from a file or from BASALT_WEBHOOK_SECRET, as other users can see command lines.",
		Example: "  basalt webhook verify --secret-file secret --id evt-00000000002a --timestamp 1614265330 --signature v1,g0hM… < body",
	}
	f := cmd.Flags()
	file := f.String("secret-file", "", "file with the secret (whsec_…)")
	id, timestamp, signature := f.String("id", "", "header webhook-id"), f.String("timestamp", "", "header webhook-timestamp"), f.String("signature", "", "header webhook-signature")
	tolerance := f.Duration("tolerance", 5*time.Minute, "maximum age of the request; 0: unlimited")
	cmd.RunE = func(*cobra.Command, []string) error {
		secret := a.Getenv("BASALT_WEBHOOK_SECRET")
		if *file != "" {
			raw, err := os.ReadFile(*file)
			if err != nil {
				return err
			}
			secret = strings.TrimSpace(string(raw))
		}
		if secret == "" {
			return usagef("--secret-file or BASALT_WEBHOOK_SECRET is required")
		}
		const most = 1 << 20
		body, err := io.ReadAll(io.LimitReader(a.In, most))
		if err != nil {
			return err
		}
		if err := webhooksig.Verify(secret, *id, *timestamp, *signature, body, a.Now(), *tolerance); err != nil {
			return err //nolint:wrapcheck // it says why the signature is not valid, which was asked for
		}
		fmt.Fprintln(a.Out, "The signature is valid.")
		return nil
	}
	return cmd
}
