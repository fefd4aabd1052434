{* All values are untrusted: each is escaped. *}
{if $machine}
<form method="post" action="{$here|escape:'html'}">
{if isset($token)}    <input type="hidden" name="token" value="{$token|escape:'html'}">
{/if}    <input type="hidden" name="modop" value="custom">
    <input type="hidden" name="a" value="rescue">
{if $wrong}    <div class="alert alert-warning" role="alert">{$words.rescue_wrong|escape:'html'}</div>
{/if}{if $rescued}    <p>{$words.rescue_on|escape:'html'}</p>
    <p><button type="submit" name="basalt_medium" value="" class="btn btn-primary">{$words.rescue_end|escape:'html'}</button> <a class="btn btn-default" href="{$here|escape:'html'}">{$words.back|escape:'html'}</a></p>
{elseif $media}    <p>{$words.rescue_help|escape:'html'}</p>
    <p><label>{$words.medium|escape:'html'} <select name="basalt_medium" class="form-control">
{foreach $media as $i}        <option value="{$i|escape:'html'}">{$i|escape:'html'}</option>
{/foreach}    </select></label></p>
    <p><button type="submit" class="btn btn-primary">{$words.rescue_begin|escape:'html'}</button> <a class="btn btn-default" href="{$here|escape:'html'}">{$words.back|escape:'html'}</a></p>
{else}    <div class="alert alert-info" role="alert">{$words.rescue_none|escape:'html'}</div>
{/if}</form>
{else}
<div class="alert alert-warning" role="alert">{$words.no_machine|escape:'html'}</div>
{/if}
