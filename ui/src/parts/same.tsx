// What a form sends, for those who would rather type it.
import { ExpandableSection } from '@patternfly/react-core';
import { useState } from 'react';
import { useText } from '../i18n';
import { request, type Request } from '../lib/commands';
import { Copyable } from './copyable';

export function Same({ cli, curl }: { cli: string; curl: string | Request }) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  return (
    <ExpandableSection toggleText={t('new.same')} isExpanded={open} onToggle={(_, v) => setOpen(v)}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('new.sameHelp')}</p>
        <Copyable label={t('new.cli')} text={cli} />
        <Copyable label={t('new.curl')} text={typeof curl === 'string' ? curl : request(curl, location.origin)} />
      </div>
    </ExpandableSection>
  );
}
