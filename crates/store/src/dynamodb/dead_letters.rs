//! Dead letters as a ring: a counter hands out numbers, and a letter takes the place of the one that many before it. So
//! the shelf is bounded by its keys alone, with nothing to sweep.

use std::ops::RangeInclusive;

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValue};
use saltern_core::campaigns::{DEAD_LETTERS_PARTITION, DeadLetter, LetterNo};

use super::error::Effect;
use super::item::campaigns::{self, NUMBER};
use super::item::{self, Item};
use super::store::DynamoStore;
use crate::campaigns::port::DeadLetterPage;
use crate::port::StoreError;

/// Apart from the letters, so that no range of them meets it.
const COUNTER_PARTITION: &str = "#dead-letters#count";
const COUNTER_SORT: &str = "count";

fn counter() -> Item {
    campaigns::keyed(COUNTER_PARTITION, COUNTER_SORT)
}

/// In the order of the places.
fn sort(place: u64) -> String {
    format!("{place:020}")
}

impl DynamoStore {
    fn place(&self, number: u64) -> u64 {
        number % self.dead_letters_max
    }

    fn letter_key(&self, number: LetterNo) -> Item {
        campaigns::keyed(DEAD_LETTERS_PARTITION, &sort(self.place(number.0)))
    }

    pub(super) async fn shelve(&self, letter: &DeadLetter) -> Result<(), StoreError> {
        let number = self.next_number().await?;
        let item = campaigns::encode_letter(self.letter_key(number), number, letter);
        // One that was on its way for so long that the ring has come round has nothing to replace.
        let put = self
            .put_campaign(item)
            .condition_expression("attribute_not_exists(pk) OR #number < :number")
            .expression_attribute_names("#number", NUMBER)
            .expression_attribute_values(":number", item::number(number.0));
        self.send_put(put).await.map(drop)
    }

    async fn next_number(&self) -> Result<LetterNo, StoreError> {
        self.metrics.called("UpdateItem");
        let request = self.client.update_item().table_name(&self.campaigns_table).set_key(Some(counter()));
        let request = request
            .update_expression("ADD #number :one")
            .expression_attribute_names("#number", NUMBER)
            .expression_attribute_values(":one", item::number(1))
            .return_values(ReturnValue::UpdatedNew)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = request.send().await.map_err(|error| self.failed(Effect::Write, error))?;
        self.metrics.wrote(answer.consumed_capacity());
        Ok(LetterNo(campaigns::counted(answer.attributes.unwrap_or_default())?))
    }

    pub(super) async fn letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError> {
        let item = self.get_campaign(self.letter_key(number)).await?;
        let letter = item.map(campaigns::decode_letter).transpose()?;
        Ok(letter.filter(|(there, _)| *there == number).map(|(_, letter)| letter))
    }

    pub(super) async fn letters_before(
        &self,
        before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError> {
        let Some(counter) = self.get_campaign(counter()).await? else { return Ok(Vec::new()) };
        let newest = campaigns::counted(counter)?;
        let oldest = newest.saturating_sub(self.dead_letters_max - 1);
        // Letters that come meanwhile are the next first page's.
        let end = before.map_or(u64::MAX, |before| before.0).min(newest + 1);
        let mut page = DeadLetterPage::new(limit);
        let Some(highest) = end.checked_sub(1).filter(|highest| *highest >= oldest) else { return Ok(page.finish()) };
        let (from, to) = (self.place(oldest), self.place(highest));
        // In one stretch, or from the first place up and then, where the ring began, from the last one down.
        let places = if from <= to {
            [Some((from, to)), None]
        } else {
            [Some((0, to)), Some((from, self.dead_letters_max - 1))]
        };
        for (from, to) in places.into_iter().flatten() {
            // A number without a letter leaves the one before it in its place.
            self.collect_letters(sort(from)..=sort(to), oldest..=highest, &mut page).await?;
        }
        Ok(page.finish())
    }

    async fn collect_letters(
        &self,
        places: RangeInclusive<String>,
        numbers: RangeInclusive<u64>,
        page: &mut DeadLetterPage,
    ) -> Result<(), StoreError> {
        let mut resume = None;
        while page.room() > 0 {
            self.metrics.called("Query");
            let request = self.client.query().table_name(&self.campaigns_table);
            let request = request
                .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
                .expression_attribute_values(":pk", item::text(DEAD_LETTERS_PARTITION))
                .expression_attribute_values(":from", item::text(places.start()))
                .expression_attribute_values(":to", item::text(places.end()))
                .scan_index_forward(false)
                .limit(i32::try_from(page.room()).unwrap_or(i32::MAX))
                .consistent_read(true)
                .set_exclusive_start_key(resume)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = request.send().await.map_err(|error| self.failed(Effect::Read, error))?;
            self.metrics.read(answer.consumed_capacity());
            for item in answer.items.unwrap_or_default() {
                let (number, letter) = campaigns::decode_letter(item)?;
                if numbers.contains(&number.0) {
                    page.push(number, letter);
                }
            }
            resume = answer.last_evaluated_key;
            if resume.is_none() {
                break;
            }
        }
        Ok(())
    }

    pub(super) async fn unshelve(&self, number: LetterNo) -> Result<(), StoreError> {
        self.metrics.called("DeleteItem");
        let request = self.client.delete_item().table_name(&self.campaigns_table);
        let request = request
            .set_key(Some(self.letter_key(number)))
            .condition_expression("#number = :number")
            .expression_attribute_names("#number", NUMBER)
            .expression_attribute_values(":number", item::number(number.0))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match request.send().await {
            Ok(answer) => {
                self.metrics.wrote(answer.consumed_capacity());
                Ok(())
            }
            Err(error)
                if error.as_service_error().is_some_and(DeleteItemError::is_conditional_check_failed_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(self.failed(Effect::Write, error)),
        }
    }
}
