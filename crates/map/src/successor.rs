//! What the process after this one gets, besides what the writer knows.

use crate::dealer::{Share, suspected_batches};
use crate::error::Error;
use crate::handover::{Handover, HandoverReason, State, Stream, Surroundings, Suspects};
use crate::input::ReadAgain;
use crate::input::chain::Anchor;
use crate::map::Ended;
use crate::output::SharedWriter;
use crate::output::writer::StopReason;
use crate::runner::DeviceLost;
use gpu_run_run::RunStats;
use gpu_run_run::Source;

/// The map fails after this many losses of the device in a row, if no record was written in between.
const MAX_LOSSES_IN_A_ROW: u32 = 3;
/// Batches that run alone on each device after a loss: more than were under way there.
const ALONE_AFTER_LOSS: u32 = 4;

/// What this process and those before it have spent.
pub(crate) struct TotalSpent {
    pub(crate) stats: RunStats,
    pub(crate) shares: Vec<Share>,
    /// How many devices this process has.
    pub(crate) devices: usize,
}

pub(crate) struct Successor {
    pub(crate) source: Source,
    pub(crate) again: ReadAgain,
    /// CSV's header.
    pub(crate) header: Vec<u8>,
    /// What was handed to this process.
    pub(crate) handed: Option<State>,
    pub(crate) surroundings: Surroundings,
}

impl Successor {
    /// Returns how many batches run one by one on each device.
    pub(crate) fn alone(&self) -> u32 {
        if self.handed.is_some() { ALONE_AFTER_LOSS } else { 0 }
    }

    /// Returns the record before which one hangs, if it is known that one does.
    pub(crate) fn suspects(&self) -> u64 {
        self.handed.as_ref().and_then(|handed| handed.suspects).map_or(0, |suspects| suspects.until)
    }

    /// Returns what the processes before this one have spent.
    pub(crate) fn spent(&self) -> RunStats {
        self.handed.as_ref().map(|handed| handed.spent.into()).unwrap_or_default()
    }

    /// Returns the devices' shares, with those of the processes before this one.
    pub(crate) fn shares(&self, mut shares: Vec<Share>) -> Vec<Share> {
        Share::add_earlier(&mut shares, self.handed.as_ref().map_or(&[], |handed| &handed.shares));
        shares
    }

    /// Hands over to another process after the last device was lost, unless that has failed too often.
    pub(crate) fn after_loss(self, lost: DeviceLost, writer: &SharedWriter, spent: TotalSpent) -> Result<Ended, Error> {
        let (record, kept) = {
            let writer = writer.lock();
            (writer.records(), writer.kept_records())
        };
        // Progress is what no process has to write again: the part of a batch that a file is cut back by is none.
        let in_vain = self.handed.as_ref().filter(|handed| kept <= handed.kept_records());
        let losses = 1 + in_vain.map_or(0, |handed| handed.losses);
        if losses >= MAX_LOSSES_IN_A_ROW {
            writer.end(StopReason::CannotRun);
            return Err(Error::DeviceLostAgain { times: losses, lost });
        }
        if matches!(self.again, ReadAgain::Never) {
            writer.end(StopReason::CannotRun);
            return Err(Error::DeviceLost(lost));
        }
        let reason = HandoverReason::DeviceLost { error: lost.to_string(), record };
        self.hand_over(reason, writer, spent, |state| state.losses = losses)
    }

    /// Hands over to another process after a launch hung and could not be stopped. The other process finds out which
    /// record it was, or continues without that record.
    pub(crate) fn after_hang(self, max_records: u32, writer: &SharedWriter, spent: TotalSpent) -> Result<Ended, Error> {
        let first = writer.lock().records();
        if matches!(self.again, ReadAgain::Never) {
            writer.end(StopReason::CannotRun);
            return Err(Error::Hung { first });
        }
        let before = self.handed.as_ref().and_then(|handed| handed.suspects);
        match Suspects::narrowed(before, first, max_records, suspected_batches(spent.devices)) {
            suspects @ Some(_) => {
                let reason = HandoverReason::SomeRecordHangs { first };
                self.hand_over(reason, writer, spent, |state| state.suspects = suspects)
            }
            None => {
                let reason = HandoverReason::RecordHangs { record: first };
                self.hand_over(reason, writer, spent, |state| state.given_up.push(first))
            }
        }
    }

    fn hand_over(
        self,
        reason: HandoverReason,
        writer: &SharedWriter,
        spent: TotalSpent,
        change: impl FnOnce(&mut State),
    ) -> Result<Ended, Error> {
        let state = {
            let mut writer = writer.writing();
            writer.observer().handing_over(&reason);
            writer.hand_over()?
        };
        let (stream, input) = match &self.again {
            ReadAgain::FromPath | ReadAgain::Never => (None, Vec::new()),
            ReadAgain::FromTape { tape, is_stdin } => {
                let anchor = state.done.mark.anchor.clone().unwrap_or_else(Anchor::start);
                let input = tape.stop(anchor.offset);
                let file = if *is_stdin { None } else { Some(tape.keep_open()?) };
                (Some(Stream::new(anchor, file)), input)
            }
        };
        let given_up = self.handed.map_or_else(Vec::new, |handed| handed.given_up);
        let TotalSpent { stats, shares, .. } = spent;
        let spent = (&stats).into();
        let mut state = State { given_up, spent, shares, stream, surroundings: self.surroundings, ..state };
        change(&mut state);
        let tape = self.again.tape().cloned();
        Ok(Ended::HandOver(Box::new(Handover::new(reason, &self.source, state, self.header, input, tape))))
    }
}
