package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// kind describes one kind to the command line. Its commands are built from it.
type kind[T any] struct {
	app         *App
	noun, about string // singular noun of the command
	aliases     []string
	// columns are the headings after the name; row returns cells in the same order.
	columns []string
	row     func(T) []string
	// plainRow omits name and age, which carry no information for this kind.
	plainRow bool
	// refs are the kinds whose IDs a row shows by name.
	refs []api.Kind
	// detail returns what get prints below the row; nil prints nothing.
	detail func(T) detail
	// flags declares the flags of a spec; the function that it returns sets the given ones in
	// the object. If nil, there is no create and no set.
	flags func(*pflag.FlagSet) func(*T) error
	// ready reports whether an object matches its spec, and otherwise what it is doing. If nil,
	// it is always ready.
	ready func(T) (bool, string, error)
	// made prints what only the response to a create contains.
	made func(T)
	// changed prints what only the response to a change contains.
	changed func(T)
	// secret: made prints a secret, which a dry run does not create.
	secret bool
	// remove is another way to delete, with its own flags; nil uses the standard one.
	remove func(*pflag.FlagSet) func(context.Context, string) (T, error)
	// own kinds are created and deleted by their own commands.
	own bool
	// readOnly kinds are operations that users start, which files cannot describe.
	readOnly bool
	// filter declares flags of the list, which narrow applies to the query.
	filter func(*cobra.Command)
	narrow func(*client.Query)
	more   []*cobra.Command
}

// anyKind is a kind of any type.
type anyKind interface {
	command() *cobra.Command
	name() api.Kind
	word() string
	completeFlag(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)
	names(ctx context.Context) map[string]string
	metas(ctx context.Context, q client.Query) []api.Meta
	query() client.Query
	apply(ctx context.Context, doc document, w waiting, dry bool) error
}

func (k *kind[T]) name() api.Kind { return api.KindOf[T]() }

// word returns the word of the kind's command, which is also that of flags that name one.
func (k *kind[T]) word() string { return k.noun }

func (k *kind[T]) objects() client.Collection[T] { return client.Of[T](k.app.api) }

func (k *kind[T]) command() *cobra.Command {
	cmd := &cobra.Command{Use: k.noun, Short: k.about, Aliases: k.aliases}
	cmd.AddCommand(k.listCommand())
	if k.can(api.CanGet) {
		cmd.AddCommand(k.getCommand())
	}
	if k.written() {
		if k.can(api.CanCreate|api.CanDelete) && !k.own {
			cmd.AddCommand(k.createCommand(), k.deleteCommand())
		}
		if k.flags != nil {
			cmd.AddCommand(k.setCommand())
		}
	}
	cmd.AddCommand(k.more...)
	for _, c := range cmd.Commands() {
		switch use := c.Use; {
		case strings.HasSuffix(use, "NAME|ID"), strings.Contains(use, "NAME|ID -- "):
			c.ValidArgsFunction = k.completeNames(1)
		case strings.HasSuffix(use, "NAME|ID…"):
			c.ValidArgsFunction = k.completeNames(0)
		default:
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	return cmd
}

func (k *kind[T]) can(verbs api.Verbs) bool { return api.KindOf[T]().Info().Verbs&verbs == verbs }

// written reports whether users write the specs of the kind's objects.
func (k *kind[T]) written() bool { return k.can(api.CanUpdate) && !k.readOnly }

// query returns --organization and --project, limited to the kind's scope.
func (k *kind[T]) query() client.Query {
	q := k.app.scope()
	scope := api.KindOf[T]().Info().Scope
	if scope < api.OfProject {
		q.Project = ""
	}
	if scope < api.OfOrganization {
		q.Organization = ""
	}
	return q
}

func (k *kind[T]) get(ctx context.Context, ref string) (T, error) {
	return k.objects().Get(ctx, ref, k.query())
}

func (k *kind[T]) rows(objects []T) table {
	if k.plainRow {
		t := table{append(slices.Clone(k.columns), "ID")}
		for _, o := range objects {
			t = append(t, append(k.row(o), api.MetaOf(&o).ID))
		}
		return t
	}
	t := table{append(append([]string{"NAME"}, k.columns...), "AGE", "ID")}
	for _, o := range objects {
		m := api.MetaOf(&o)
		row := append([]string{m.Name}, k.row(o)...)
		t = append(t, append(row, formatAge(k.app.Now(), m.CreatedAt), m.ID))
	}
	return t
}

func (k *kind[T]) printOne(ctx context.Context, o T) error {
	return k.app.print(o, func() table {
		k.app.learn(ctx, k.refs)
		return k.rows([]T{o})
	})
}

func (k *kind[T]) listCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List " + kindsWords(k.name()), Args: cobra.NoArgs}
	limit := cmd.Flags().Int("limit", 0, "maximum number of results; 0: all")
	search, selector, fields, sort := new(string), new(string), new(string), new(string)
	if k.can(api.CanGet) {
		cmd.Flags().StringVar(search, "search", "", "filter by part of the name or ID, or the beginning of an address")
		cmd.Flags().StringVarP(selector, "selector", "l", "", "filter by labels, comma-separated: key=value, key!=value, key or !key")
		cmd.Flags().StringVar(fields, "field-selector", "", "filter by fields, comma-separated, e.g. state=Failed")
		cmd.Flags().StringVar(sort, "sort", "", "order by a field, e.g. createdAt; -createdAt: latest first")
	}
	if k.filter != nil {
		k.filter(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		const page = 1000 // the server's maximum
		if *limit < 0 {
			return usagef("--limit %d is negative", *limit)
		}
		objects, q := []T{}, k.query()
		q.Limit, q.Search, q.Labels, q.Fields, q.Sort = min(*limit, page), *search, *selector, *fields, api.ListSort(*sort)
		if k.narrow != nil {
			k.narrow(&q)
		}
		for o, err := range k.objects().All(cmd.Context(), q) {
			if err != nil {
				return err
			}
			objects = append(objects, o)
			if len(objects) == *limit {
				break
			}
		}
		return k.app.print(objects, func() table {
			if len(objects) > 0 {
				k.app.learn(cmd.Context(), k.refs)
			}
			return k.rows(objects)
		})
	}
	return cmd
}

func (k *kind[T]) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME|ID", Aliases: []string{"show"}, Short: "Show " + aKind(k.name()), Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := k.get(cmd.Context(), args[0])
			if err == nil {
				err = k.printOne(cmd.Context(), o)
			}
			if err != nil || k.detail == nil || k.app.flags.output != "table" {
				return err
			}
			if text := k.detail(o).String(); text != "" {
				_, err = fmt.Fprintf(k.app.Out, "\n%s", text)
			}
			return err
		},
	}
}

func (k *kind[T]) createCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create NAME", Short: "Create " + aKind(k.name()), Args: cobra.ExactArgs(1)}
	fill := k.flags(cmd.Flags())
	labels := cmd.Flags().StringToString("label", nil, "key=value, repeatable")
	w := k.writeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var o T
		if err := fill(&o); err != nil {
			return err
		}
		q := k.query()
		*api.MetaOf(&o) = api.Meta{Name: args[0], Organization: q.Organization, Project: q.Project, Labels: *labels}
		o, err := k.target(*w).Create(cmd.Context(), o)
		if err != nil {
			return err
		}
		if k.made != nil && (!*w.dry || !k.secret) {
			k.made(o)
		}
		return k.finish(cmd.Context(), o, *w, "created")
	}
	return cmd
}

func (k *kind[T]) setCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "set NAME|ID", Short: "Update " + aKind(k.name()), Args: cobra.ExactArgs(1)}
	fill := k.flags(cmd.Flags())
	labels := cmd.Flags().StringToString("label", nil, "key=value, repeatable; key= removes the label")
	name := cmd.Flags().String("name", "", "new name")
	w := k.writeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.changeIn(cmd.Context(), k.target(*w), args[0], func(o *T) error {
			m := api.MetaOf(o)
			m.Name = first(*name, m.Name)
			m.Labels = mergeLabels(m.Labels, *labels)
			return fill(o)
		})
		if err != nil {
			return err
		}
		if k.changed != nil {
			k.changed(o)
		}
		return k.finish(cmd.Context(), o, *w, "changed")
	}
	return cmd
}

func mergeLabels(old, given map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{old, given} {
		for key, v := range m {
			if out[key] = v; v == "" {
				delete(out, key)
			}
		}
	}
	return out
}

// change reads an object, changes it and writes it. It retries when the object was changed in
// the meantime, as by an agent's report.
func (k *kind[T]) change(ctx context.Context, ref string, change func(*T) error) (T, error) {
	return k.changeIn(ctx, k.objects(), ref, change)
}

// changeIn is change, with where the object is written: it may be a dry run.
func (k *kind[T]) changeIn(ctx context.Context, objects client.Collection[T], ref string, change func(*T) error) (T, error) {
	const tries = 8
	for i := 1; ; i++ {
		o, err := k.get(ctx, ref)
		if err == nil {
			err = change(&o)
		}
		if err != nil {
			return o, err
		}
		next, err := objects.Update(ctx, api.MetaOf(&o).ID, o)
		if err == nil || i == tries || api.CodeOf(err) != api.CodeConflict {
			return next, err
		}
	}
}

func (k *kind[T]) deleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME|ID…", Short: "Delete " + kindsWords(k.name()), Args: cobra.MinimumNArgs(1)}
	w := k.waitFlags(cmd)
	remove := func(ctx context.Context, id string) (T, error) { return k.objects().Delete(ctx, id) }
	if k.remove != nil {
		remove = k.remove(cmd.Flags())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, ref := range args {
			o, err := k.get(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if o, err = remove(cmd.Context(), api.MetaOf(&o).ID); err != nil {
				return err
			}
			if w.wait {
				if err := k.awaitGone(cmd.Context(), o, *w); err != nil {
					return err
				}
			}
			fmt.Fprintf(k.app.Err, "%s %s deleted\n", strings.ToLower(k.noun), api.MetaOf(&o).Name)
		}
		return nil
	}
	return cmd
}
