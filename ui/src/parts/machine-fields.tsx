// Fields of a virtual machine's size that are chosen at its creation and can be changed later.
import type { Schemas } from '../api/client';
import { useText } from '../i18n';
import { policyOf, type Machine } from '../lib/machine';
import { SelectField } from './text-field';

interface PolicyProps {
  id: string;
  flavor: Schemas['FlavorSpec'] | undefined;
  value: Machine['cpuPolicy'];
  onChange: (v: string) => void;
}

/** CPUPolicyField is the choice of a flavor that leaves it to instances; of others, it shows what they have. */
export function CPUPolicyField({ id, flavor, value, onChange }: PolicyProps) {
  const { t } = useText();
  const free = flavor?.cpuPolicy === 'optional';
  const fixed = policyOf('', flavor);
  const options: [string, string][] = free
    ? [
        ['', t('mach.policy.shared')],
        ['dedicated', t('mach.policy.dedicated')],
      ]
    : [['', t(`mach.policy.${fixed}`)]];
  return (
    <SelectField
      id={id}
      label={t('mach.policy')}
      help={t(free || fixed === 'dedicated' ? 'mach.policyHelp' : 'mach.policyFlavor')}
      path="spec.cpuPolicy"
      value={free && value === 'dedicated' ? value : ''}
      onChange={onChange}
      options={options}
    />
  );
}

interface CPUProps {
  id: string;
  value: Machine['cpu'];
  onChange: (v: string) => void;
  help: string;
}

/** CPUField is the choice of the processor model that the guest gets. */
export function CPUField({ id, value, onChange, help }: CPUProps) {
  const { t } = useText();
  return (
    <SelectField
      id={id}
      label={t('mach.cpu')}
      help={help}
      path="spec.cpu"
      value={value}
      onChange={onChange}
      options={[
        ['', t('mach.cpu.baseline')],
        ['host', t('mach.cpu.host')],
      ]}
    />
  );
}

interface PagesProps {
  id: string;
  value: Machine['hugePages'];
  onChange: (v: string) => void;
  /** What an empty value means. */
  otherwise?: string;
}

export function HugePagesField({ id, value, onChange, otherwise }: PagesProps) {
  const { t } = useText();
  return (
    <SelectField
      id={id}
      label={t('mach.pages')}
      help={t('mach.pagesHelp')}
      path="spec.hugePages"
      value={value}
      onChange={onChange}
      options={[
        ['', otherwise ?? t('mach.asFlavor')],
        ['2Mi', '2 MiB'],
        ['1Gi', '1 GiB'],
      ]}
    />
  );
}
