// What a form sends, for who would rather write it down: hidden until asked for.
import { ExpandableSection } from '@patternfly/react-core';
import { useText } from '../i18n';
import { Copyable } from './copyable';

export function SameAs({ command, curl }: { command?: string; curl: string }) {
  const { t } = useText();
  return (
    <ExpandableSection toggleText={t('cust.sameAs')} isIndented>
      <div className="basalt-stack">
        {command && <Copyable label="basalt" text={command} />}
        <Copyable label="curl" text={curl} />
      </div>
    </ExpandableSection>
  );
}
