// The virtual machine of a new instance: its CPUs, huge pages, firmware and operating system.
import { useText } from '../../i18n';
import type { Machine } from '../../lib/machine';
import { CheckField } from '../../parts/check-field';
import { CPUField, CPUPolicyField, HugePagesField } from '../../parts/machine-fields';
import { SelectField } from '../../parts/text-field';
import type { Schemas } from '../../api/client';

interface Props {
  machine: Machine;
  set: (m: Machine) => void;
  flavor: Schemas['FlavorSpec'] | undefined;
  vgpu: boolean;
  /** The operating system of the image, if it is known. */
  os: string | undefined;
}

export function MachineFields({ machine: m, set, flavor, vgpu, os }: Props) {
  const { t } = useText();
  const to =
    <K extends keyof Machine>(name: K) =>
    (value: string | boolean) =>
      set({ ...m, [name]: value });
  // The API has these defaults too (ForImage).
  const windows = os === 'windows';
  const whole = windows && m.os !== 'linux';
  return (
    <>
      <CPUPolicyField id="new-cpu-policy" flavor={flavor} value={m.cpuPolicy} onChange={to('cpuPolicy')} />
      <CPUField id="new-cpu" help={t('mach.cpuHelp')} value={m.cpu} onChange={to('cpu')} />
      {!vgpu && <HugePagesField id="new-huge-pages" value={m.hugePages} onChange={to('hugePages')} />}
      <SelectField
        id="new-os"
        label={t('mach.os')}
        help={t('mach.osHelp')}
        path="spec.os"
        value={m.os}
        onChange={to('os')}
        options={[
          ...(windows
            ? ([
                ['', t('mach.asImage', { what: 'Windows' })],
                ['linux', 'Linux'],
              ] as [string, string][])
            : ([['', 'Linux']] as [string, string][])),
          ['windows', 'Windows'],
        ]}
      />
      <SelectField
        id="new-firmware"
        label={t('mach.firmware')}
        help={t('mach.fixed')}
        path="spec.firmware"
        value={m.firmware}
        onChange={to('firmware')}
        options={[
          ...(whole
            ? ([
                ['', t('mach.asImage', { what: t('mach.uefiWhole') })],
                ['bios', 'BIOS'],
              ] as [string, string][])
            : ([['', 'BIOS']] as [string, string][])),
          ['uefi', 'UEFI'],
        ]}
      />
      {m.firmware === 'uefi' && (
        <>
          <CheckField
            id="new-secure-boot"
            label="Secure Boot"
            help={t('mach.secureBootHelp')}
            path="spec.secureBoot"
            checked={m.secureBoot}
            onChange={to('secureBoot')}
          />
          <CheckField
            id="new-tpm"
            label="TPM 2.0"
            help={t('mach.tpmHelp')}
            path="spec.tpm"
            checked={m.tpm}
            onChange={to('tpm')}
          />
        </>
      )}
    </>
  );
}
