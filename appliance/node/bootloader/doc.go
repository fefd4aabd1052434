// Package bootloader keeps GRUB current on every disk that an installed node starts
// from: one disk, or two that mirror each other (package mirror).
//
//	GRUB's packages (/usr/lib/grub) ─┐
//	each disk's boot areas ──────────┼─► Observe ─► State ─► Faults (pure) ─► hardware check
//	record (/boot/grub) ─────────────┘                 └───► Update: grub-install ─► record
//
// The packages grub-pc-bin and grub-efi-amd64-bin install nothing on a disk, so an update
// of them has no effect by itself. Each disk has two boot loaders, for BIOS (the first
// sector and partition 1) and for UEFI (partition 2). The record has a hash of both, and
// of the files that they were made from. A disk without a record, such as a new one, and
// one with another content than recorded are updated, too.
package bootloader
