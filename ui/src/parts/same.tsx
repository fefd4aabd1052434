// What a form sends, for those who would rather type it.
import { ExpandableSection } from '@patternfly/react-core';
import { useState } from 'react';
import { useText } from '../i18n';
import { Copyable } from './copyable';

export function Same({ cli, curl }: { cli: string; curl: string }) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  return (
    <ExpandableSection toggleText={t('op.same')} isExpanded={open} onToggle={(_, v) => setOpen(v)}>
      <div className="basalt-stack">
        <Copyable label={t('op.cli')} text={cli} />
        <Copyable label={t('op.curl')} text={curl} />
      </div>
    </ExpandableSection>
  );
}
