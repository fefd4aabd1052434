// Package cli implements the command line `basalt <noun> <verb>`, which only uses the public
// API. kind.go builds list, get, create, set and delete of every kind from a description in the
// kind's own file (instance.go, …).
package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// Exit codes, which `basalt help exit-codes` lists. `instance exec` exits with the code of its
// command instead.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitDenied      = 5
	exitUnavailable = 6
	exitTimeout     = 7
)

const exitCodes = `  0  done
  1  failed
  2  wrong usage or invalid input
  3  not found
  4  conflict: already exists, in use, wrong state, changed in the meantime, no capacity
  5  not authenticated, or not allowed
  6  the server or a node cannot be reached
  7  --wait took longer than --timeout
'basalt instance exec' exits with the command's own code.`

// App is one run of the command line.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time
	// Patience is how long --wait tolerates that an object cannot be placed; 0 means 15 s.
	Patience time.Duration
	// Hardware checks this machine; nil runs the real checks.
	Hardware func(context.Context) []api.HardwareCheck
	// ConfigDir contains config.yaml; empty means that no configuration is read or saved.
	ConfigDir string

	flags struct {
		server, ca, token, organization, project, output string
		stale                                            bool
	}
	config config
	api    *client.API
	names  map[string]string // by ID; filled by learn
}

// Version is the version of this program. Its main package sets it.
var Version = "dev"

// Main runs the command line of this process and returns its exit code.
func Main(ctx context.Context, args []string) int {
	dir, err := os.UserConfigDir()
	if err == nil {
		dir += "/basalt"
	}
	a := &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, ConfigDir: dir}
	return a.Run(ctx, args)
}

// exitCode ends a run that has already printed its output.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Run executes one command line and returns its exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	return a.printError(ctx, err)
}

// Check returns what is wrong with a command line without running it: an unknown command or
// flag, or a wrong number of arguments.
func Check(args []string) error {
	root := (&App{Getenv: func(string) string { return "" }, Now: time.Now}).root()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// printError prints an error and its hint, and returns the exit code for it.
func (a *App) printError(ctx context.Context, err error) int {
	var e *api.Error
	var where placed
	if errors.As(err, &where) && where.applied > 0 {
		defer fmt.Fprintf(a.Err, "note: documents before it were applied, documents after it were not\n")
	}
	if !errors.As(err, &e) {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(a.Err, "error: %v\n", err)
		var usage usageError
		if errors.As(err, &usage) {
			fmt.Fprintf(a.Err, "hint: %s\n", usage.hint)
			return exitUsage
		}
		return exitError
	}
	msg := e.Message
	if e.Field != "" {
		msg = e.Field + ": " + msg
	}
	if where.where != "" {
		msg = where.where + ": " + msg
	}
	fmt.Fprintf(a.Err, "error: %s\n", printable(msg))
	if e.Hint != "" {
		fmt.Fprintf(a.Err, "hint: %s\n", e.Hint)
	}
	for _, o := range e.Others {
		fmt.Fprintf(a.Err, "error: %s: %s\n", o.Field, printable(o.Message))
		if o.Hint != "" {
			fmt.Fprintf(a.Err, "hint: %s\n", o.Hint)
		}
	}
	switch e.Code {
	case api.CodeInvalid, api.CodeTooLarge:
		return exitUsage
	case api.CodeNotFound:
		return exitNotFound
	case api.CodeExists, api.CodeConflict, api.CodePrecondition, api.CodeInUse, api.CodeState, api.CodeNoCapacity, api.CodeQuota:
		return exitConflict
	case api.CodeUnauthenticated, api.CodeForbidden:
		return exitDenied
	case api.CodeUnavailable, api.CodeRateLimited:
		return exitUnavailable
	case codeTimeout:
		return exitTimeout
	}
	return exitError
}

// codeTimeout is an error code that only the CLI uses: --timeout has expired.
const codeTimeout = api.Code("timeout")

// usageError is an error in a command line, with a hint.
type usageError struct {
	error
	hint string
}

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...), "add --help to see how it is used"}
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use: "basalt", Version: Version, Short: "Basalt: a GPU cloud from your own servers", SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDescriptions: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.connect(cmd) },
	}
	root.SetVersionTemplate("basalt {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		var usage usageError
		if errors.As(err, &usage) {
			return usageError{err, usage.hint}
		}
		return usagef("%w", err)
	})
	root.SuggestionsMinimumDistance = 2
	f := root.PersistentFlags()
	f.StringVar(&a.flags.server, "server", "", "https://host, http://host:port or unix:/path; several of one cluster, comma-separated (BASALT_SERVER)")
	f.StringVar(&a.flags.ca, "ca-file", "", "CA of the cluster, /var/lib/basalt/cluster/ca.pem on its nodes; default: the system's CAs (BASALT_CA_FILE)")
	f.BoolVar(&a.flags.stale, "stale", false, "read the server's own state, which may be out of date")
	f.StringVar(&a.flags.token, "token", "", "API key (BASALT_TOKEN)")
	f.StringVar(&a.flags.organization, "organization", "", "organization, ID or name (BASALT_ORGANIZATION)")
	f.StringVarP(&a.flags.project, "project", "p", "", "project, ID or name (BASALT_PROJECT)")
	f.StringVarP(&a.flags.output, "output", "o", "table", "table, json or yaml")
	root.AddGroup(&cobra.Group{ID: "kinds", Title: "Resources:"}, &cobra.Group{ID: "more", Title: "More:"})
	for _, k := range a.kinds() {
		if k.name() == api.KindJoinToken || k.name() == api.KindUpgrade {
			continue // `basalt node token`, `basalt cluster upgrade`
		}
		cmd := k.command()
		cmd.GroupID = "kinds"
		root.AddCommand(cmd)
	}
	for _, cmd := range []*cobra.Command{a.clusterCommand(), a.doctorCommand(), a.applyCommand(), a.watchCommand(), a.ledgerCommand(), a.walletCommand(), a.topUpCommand(), a.autoPayCommand(), a.taxSettingsCommand(), a.usageCommand(), a.costCommand(), a.auditCommand(), a.alertsCommand(), a.capacityCommand(), a.revenueCommand(), a.offerCommand(), a.brandingCommand(), a.mailCommand(), a.paymentSettingsCommand(), a.signUpSettingsCommand(), a.acmeSettingsCommand(), a.securitySettingsCommand(), a.loginCommand(), a.logoutCommand(), a.passwordCommand(), a.languageCommand(), a.totpCommand(), a.passkeyCommand(),
		a.serviceCommand(), a.contextCommand(), a.whoamiCommand(), a.versionCommand()} {
		cmd.GroupID = "more"
		root.AddCommand(cmd)
	}
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "List the exit codes", Long: exitCodes}) // a help topic
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	a.completeFlags(root)
	strictArgs(root)
	return root
}

// strictArgs turns an unknown subcommand or a wrong number of arguments into a usage error.
func strictArgs(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		strictArgs(c)
	}
	check := cmd.Args
	switch {
	case check != nil:
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usagef("%s: %w", c.CommandPath(), err)
			}
			return nil
		}
	case cmd.HasSubCommands():
		cmd.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				err := fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
				if near := c.SuggestionsFor(args[0]); len(near) > 0 {
					return usageError{err, "did you mean: " + strings.Join(near, ", ")}
				}
				return usageError{err, "add --help to see how it is used"}
			}
			return nil
		}
		if cmd.Run == nil && cmd.RunE == nil {
			cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// connect reads flags, environment and configuration file, in this order of precedence, and
// creates the API client.
func (a *App) connect(cmd *cobra.Command) error {
	switch a.flags.output {
	case "table", "json", "yaml":
	default:
		return usagef("unknown --output %q, want table, json or yaml", a.flags.output)
	}
	var err error
	if a.config, err = a.readConfig(); err != nil {
		return err
	}
	server := first(a.flags.server, a.Getenv("BASALT_SERVER"), a.config.Server)
	token := first(a.flags.token, a.Getenv("BASALT_TOKEN"))
	// The saved token is for the saved server only.
	if token == "" && server == a.config.Server {
		token = a.config.Token
	}
	a.config.Server, a.config.Token = server, token
	a.config.Organization = first(a.flags.organization, a.Getenv("BASALT_ORGANIZATION"), a.config.Organization)
	a.config.Project = first(a.flags.project, a.Getenv("BASALT_PROJECT"), a.config.Project)
	if server == "" {
		a.config.Server = defaultServer
	}
	for c := cmd; c != nil; c = c.Parent() { // these work without a server
		if c.Name() == "completion" || c.Name() == "help" || c.Name() == "context" {
			return nil
		}
		if all := c.Flags().Lookup("all"); c.Name() == "hardware" && all != nil && !all.Changed {
			return nil
		}
	}
	var trust *tls.Config
	if trust, err = a.trust(); err == nil {
		a.api, err = client.New(client.Options{Server: a.config.Server, Token: token, TLS: trust, Stale: a.flags.stale})
	}
	return err
}

// trust returns the TLS configuration with the CA of --ca-file or else of the last login; nil
// means the system's CAs.
func (a *App) trust() (*tls.Config, error) {
	if path := first(a.flags.ca, a.Getenv("BASALT_CA_FILE")); path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		a.config.CA = string(raw)
	}
	if a.config.CA == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(a.config.CA)) {
		return nil, usagef("--ca-file contains no certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// scope returns the query for --organization and --project.
func (a *App) scope() client.Query {
	return client.Query{Organization: a.config.Organization, Project: a.config.Project}
}
