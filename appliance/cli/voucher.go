package cli

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) vouchers() *kind[api.Voucher] {
	k := &kind[api.Voucher]{
		app: a, noun: "voucher", about: "Vouchers: codes that give organizations credit",

		columns: []string{"AMOUNT", "REDEEMED", "STATE", "EXPIRES", "NOTE"},
		row: func(v api.Voucher) []string {
			expires := "never"
			if v.Spec.ExpiresAt != nil {
				expires = formatTime(*v.Spec.ExpiresAt)
			}
			return []string{formatMicros(v.Spec.AmountMicros) + " " + v.Spec.Currency, strconv.FormatInt(v.Status.Redeemed, 10) + "/" + strconv.FormatInt(v.Spec.Redemptions, 10),
				string(v.State(a.Now())), expires, v.Spec.Note}
		},
		secret: true,
	}
	k.more = []*cobra.Command{a.voucherCreateCommand(k), k.deleteCommand(), a.voucherRedeemCommand()}
	return k
}

func (a *App) voucherCreateCommand(k *kind[api.Voucher]) *cobra.Command {
	cmd := &cobra.Command{Use: "create AMOUNT CURRENCY", Short: "Create a voucher, and print its code", Args: cobra.ExactArgs(2),
		Long:    "The code is printed once: the cluster does not keep it. For operators.",
		Example: "  basalt voucher create 50 EUR\n  basalt voucher create 10 EUR --redemptions 200 --expires 2027-01-01 --name fair --code FAIR-2026-GPUS"}
	f := cmd.Flags()
	name, code, note := f.String("name", "", "name of the voucher; default: generated"), f.String("code", "", "12 to 64 letters and digits; default: generated"), f.String("note", "", "free text")
	redemptions := f.Int64("redemptions", 1, "how many organizations can redeem it, each once")
	expires := f.String("expires", "", "date from which it gives nothing, e.g. 2027-01-01; default: does not expire")
	w := writing{dry: dryRunFlag(f)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v := api.Voucher{Meta: api.Meta{Name: *name}, Code: *code, Spec: api.VoucherSpec{Currency: strings.ToUpper(args[1]), Redemptions: *redemptions, Note: *note}}
		var err error
		if v.Spec.AmountMicros, err = parseMicros(args[0]); err != nil {
			return err
		}
		if *expires != "" {
			at, err := moment(*expires, a.Now())
			if err != nil {
				return err
			}
			v.Spec.ExpiresAt = &at
		}
		if v, err = k.target(w).Create(cmd.Context(), v); err != nil {
			return err
		}
		if a.flags.output == "table" && !*w.dry {
			fmt.Fprintf(a.Out, "code: %s\nSave it now: it is not shown again.\n\n", v.Code)
		}
		return k.finish(cmd.Context(), v, w, "created")
	}
	return cmd
}

func (a *App) voucherRedeemCommand() *cobra.Command {
	return &cobra.Command{Use: "redeem [CODE]", Short: "Redeem a voucher: its credit goes to the organization", Args: cobra.MaximumNArgs(1),
		Long:    "Without CODE it is asked for, or read from a pipe. An organization redeems a voucher once.",
		Example: "  basalt voucher redeem 7K3M-Q2XA-9FTV-H5WB-0CDE --organization acme",
		RunE: func(cmd *cobra.Command, args []string) error {
			code := ""
			if len(args) == 1 {
				code = args[0]
			} else {
				var err error
				if code, err = a.secret(bufio.NewReader(a.In), "Code: "); err != nil {
					return err
				}
			}
			if strings.TrimSpace(code) == "" {
				return usagef("CODE is empty")
			}
			p, err := a.api.RedeemVoucher(cmd.Context(), a.config.Organization, code)
			if err != nil {
				return err
			}
			return a.payments().printOne(cmd.Context(), p)
		}}
}
