// Whether a reseller is charged for its customers' usage.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import { useChangeOrganization, type Organization } from '../../api/customers';
import { useText } from '../../i18n';
import { formatLocal } from '../../lib/format';
import { toggled, wholesaleAt } from '../../lib/wholesale';
import { Confirm } from '../../parts/confirm';

export function WholesaleCard({ organization: o, operator }: { organization: Organization; operator: boolean }) {
  const { t, language } = useText();
  const [asked, setAsked] = useState(false);
  const { billing } = o.spec;
  const terms = wholesaleAt(billing?.wholesale, new Date());
  const change = useChangeOrganization(o, () => setAsked(false));
  const toggle = (now: Organization['spec']) => ({
    ...now,
    billing: now.billing && { ...now.billing, wholesale: toggled(now.billing.wholesale, new Date()) },
  });
  if (!billing || o.meta.organization || (!operator && !terms)) return null;
  const on = terms !== undefined && !terms.until;
  return (
    <Card>
      <CardTitle component="h2">{t('cust.wholesale')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('cust.wholesaleHelp')}</p>
        <p>
          {terms ? (
            <>
              {t('cust.wholesaleFrom')} {formatLocal(terms.from, language)}
              {terms.until && (
                <>
                  {', '}
                  {t('cust.wholesaleUntil')} {formatLocal(terms.until, language)}
                </>
              )}
            </>
          ) : (
            t('cust.wholesaleOff')
          )}
        </p>
        {operator && (
          <div>
            <Button variant="secondary" onClick={() => (change.reset(), setAsked(true))}>
              {t(on ? 'cust.wholesaleEnd' : 'cust.wholesaleBegin')}
            </Button>
          </div>
        )}
      </CardBody>
      {asked && (
        <Confirm
          title={t(on ? 'cust.wholesaleEnd' : 'cust.wholesaleBegin')}
          help={t(on ? 'cust.wholesaleEndHelp' : 'cust.wholesaleBeginHelp', { name: o.meta.name })}
          action={t(on ? 'cust.wholesaleEnd' : 'cust.wholesaleBegin')}
          busy={change.isPending}
          error={change.error}
          onConfirm={() => change.mutate(toggle)}
          onClose={() => setAsked(false)}
        />
      )}
    </Card>
  );
}
